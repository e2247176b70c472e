#!/usr/bin/env python3
"""Writes reference.json: templates, their variables, and what transformers makes of them, or that it refuses them.

usage: make_reference.py > reference.json     needs transformers and jinja2
"""
import json
import sys
from pathlib import Path

import jinja2
import transformers
from transformers.utils.chat_template_utils import _compile_jinja_template, render_jinja_template

sys.path.insert(0, str(Path(__file__).parent))
from cases import CHATS, EXPRESSIONS, TEMPLATES, VARIABLES  # noqa: E402


def spans_in_bytes(text, spans):
    return [[len(text[:begin].encode()), len(text[:end].encode())] for begin, end in spans]


def rendered(template, variables):
    try:
        text = _compile_jinja_template(template).render(**variables)
        text.encode()  # half a surrogate pair is no text
        return {"text": text}
    except Exception as error:  # whatever Python raises
        return {"error": type(error).__name__}


def of_chat(template, chat):
    chat = dict(chat)
    messages = chat.pop("messages")
    try:
        text, spans = render_jinja_template([messages], chat_template=template, return_assistant_tokens_mask="generation" in template, **chat)
        return {"text": text[0], "generated": spans_in_bytes(text[0], spans[0] if spans else [])}
    except Exception as error:
        return {"error": type(error).__name__}


def main():
    cases = []
    for template in ["{{ " + expression + " }}" for expression in EXPRESSIONS] + TEMPLATES:
        cases.append({"template": template, **rendered(template, VARIABLES)})
    for index, (template, chats) in enumerate(CHATS):
        cases += [{"chat_template": index, "chat": chat, **of_chat(template, chat)} for chat in chats]
    made_by = f"transformers {transformers.__version__}, jinja2 {jinja2.__version__}"
    head = {"made_by": made_by, "variables": VARIABLES, "chat_templates": [template for template, _ in CHATS]}
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    print(json.dumps(head, ensure_ascii=False)[:-1] + ',\n"cases": [\n' + lines + "\n]}")


if __name__ == "__main__":
    main()
