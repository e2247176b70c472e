// The two files, the corpus packed, between labels that demo.cpp declares. CMake says where the files are.
    .section .rodata
    .global trainyard_demo_corpus, trainyard_demo_corpus_end
trainyard_demo_corpus:
    .incbin TRAINYARD_DEMO_CORPUS
trainyard_demo_corpus_end:
    .balign 8
    .global trainyard_demo_corpus_bytes
trainyard_demo_corpus_bytes:
    .quad TRAINYARD_DEMO_CORPUS_BYTES
    .global trainyard_demo_configuration, trainyard_demo_configuration_end
trainyard_demo_configuration:
    .incbin TRAINYARD_DEMO_CONFIGURATION
trainyard_demo_configuration_end:
    .section .note.GNU-stack, "", @progbits
