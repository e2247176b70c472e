#!/usr/bin/env python3
"""Writes rouge_reference.json beside it: texts and their F1 by Google's rouge_score (`pip install rouge-score`), without its
stemmer and with it, and stems of words, a few for each rule, by nltk's PorterStemmer, which is that stemmer."""
import json
from pathlib import Path

from nltk.stem.porter import PorterStemmer
from rouge_score import rouge_scorer

PAIRS = [
    ("the cat sat on the mat", "the cat was on the mat"),
    ("The CAT, sat: on the-mat!", "a cat sat on 2 mats"),
    ("", "something"),
    ("something", ""),
    ("\n", "\n\n"),
    ("one", "one"),
    ("one", "two"),
    ("the the the the", "the the"),
    ("a b c d e f g", "g f e d c b a"),
    ("naïve café déjà vu", "naive cafe deja vu"),
    ("Tom asks Ann to buy milk and bread. Ann agrees.", "Ann will buy bread and milk because Tom asked her to."),
    ("x1 y2\nz3\tx1", "x1 z3 y2 x1 x1"),
    ("Tom is buying milk.\nAnn agreed to baking the bread.", "Ann agrees to bake bread.\n\nTom buys some milk."),
    ("a b c d\nc d e f\nb d f", "b c d e\na c e\nf d b a"),
    ("the the cat\nthe cat", "the cat the\nthe the the"),
]
WORDS = """sky skies die dying lie lying tie tying news innings outings cannings howe exceed proceed succeed is as a
caresses ponies ties caress cats flies feed agreed plastered bled motoring sing died cried conflated troubled sized hopping tanned
falling hissing fizzed failing filing happy enjoy spy relational conditional rational valenci hesitanci digitizer conformabli
radicalli differentli vileli analogousli vietnamization predication operator feudalism decisiveness hopefulness callousness
formaliti sensitiviti sensibiliti hopefulli geologi triplicate formative formalize electriciti electrical hopeful goodness revival
allowance inference airliner gyroscopic adjustable defensible irritant replacement adjustment dependent adoption division onion
homologou communism activate angulariti homologous effective bowdlerize probate rate cease controll roll generalli 1990s x2ing
summarised summaries dialogues yyed saying""".split()

rows = []
for made, reference in PAIRS:
    row = {"made": made, "reference": reference}
    for key, stems in (("plain", False), ("stemmed", True)):
        scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL", "rougeLsum"], use_stemmer=stems)
        row[key] = {name: score.fmeasure for name, score in scorer.score(reference, made).items()}
    rows.append(row)
stem = PorterStemmer().stem
text = json.dumps({"scores": rows, "stems": {word: stem(word) for word in WORDS}}, indent=1, ensure_ascii=False)
Path(__file__).with_name("rouge_reference.json").write_text(text + "\n")
