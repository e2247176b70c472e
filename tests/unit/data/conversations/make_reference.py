#!/usr/bin/env python3
"""Writes tokenizer/ and reference.json beside itself: conversations by several templates, as ids and as the mask of the
assistant's tokens that transformers' apply_chat_template(return_assistant_tokens_mask=True) gives.

usage: make_reference.py     needs transformers, tokenizers and jinja2
"""
import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

HERE = Path(__file__).parent
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEXT = ["Who is there? It is the assistant, who answers the user.\n\n", "The answer is 42, and the user asks again.\n",
        "system user assistant human: the user's message\n"]

TEMPLATES = {
    "chatml": "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}{% if m.role == 'assistant' %}"
              "{% generation %}{{ m.content + '<|im_end|>' }}{% endgeneration %}{% else %}{{ m.content + '<|im_end|>' }}"
              "{% endif %}{{ '\\n' }}{% endfor %}"
              "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    # No token ends where an answer begins or ends.
    "joined": "{% for m in messages %}{{ m.role }}{% if m.role == 'assistant' %}"
              "{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}{{ '\\n' }}{% endfor %}",
    "tools": "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<|im_start|>{% if m.role == 'assistant' %}"
             "{% generation %}{{ m.tool_calls | tojson if m.tool_calls else m.content }}<|im_end|>{% endgeneration %}"
             "{% else %}{{ m.content }}{% endif %}{% endfor %}",
}
CONVERSATIONS = [
    {"messages": [{"role": "user", "content": "Who is there?"}, {"role": "assistant", "content": "the answer"}]},
    {"messages": [{"role": "system", "content": "It is the user's."}, {"role": "user", "content": "Who\n\n"},
                  {"role": "assistant", "content": "\n\nIt is 42."}, {"role": "user", "content": "the <|im_end|> again"},
                  {"role": "assistant", "content": "äöü and 日本語"}]},
    {"messages": [{"role": "assistant", "content": "answers first"}, {"role": "user", "content": "user"},
                  {"role": "assistant", "content": ""}]},
    {"messages": [{"role": "user", "content": "the tool"},
                  {"role": "assistant", "content": None,
                   "tool_calls": [{"type": "function", "function": {"name": "ask", "arguments": {"b": 1, "a": [2.5, "x"]}}}]},
                  {"role": "tool", "content": "42"}, {"role": "assistant", "content": "It is 42"}],
     "tools": [{"type": "function", "function": {"name": "ask", "parameters": {"type": "object"}}}]},
]


def made_tokenizer():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=330, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(TEXT, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=SPECIAL[0])


def main():
    tokenizer = made_tokenizer()
    tokenizer.save_pretrained(HERE / "tokenizer")
    cases = []
    for name, template in TEMPLATES.items():
        for line in CONVERSATIONS:
            if name != "tools" and "tools" in line:
                continue
            made = tokenizer.apply_chat_template(line["messages"], tools=line.get("tools"), chat_template=template,
                                                 tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
            cases.append({"template": template, "line": line, "ids": made["input_ids"], "mask": made["assistant_masks"]})
    text = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    (HERE / "reference.json").write_text(f"[\n{text}\n]\n")


if __name__ == "__main__":
    main()
