"""What make_reference.py gives to transformers: expressions, templates, and templates of chats in the manner of known models."""

VARIABLES = {
    "s": "Hello World", "u": "Grüße, Ωmega 😀", "sp": "  x y  ", "n": 7, "z": 0, "neg": -3, "f": 2.5, "t": True, "no": False,
    "nil": None, "e": "", "l": [3, 1, 2], "le": [], "d": {"b": 1, "a": [1, "x"], "items": 5}, "de": {},
    "nested": {"k": {"x": [10, {"y": "deep"}]}},
    "ms": [{"role": "system", "content": "Sys"}, {"role": "user", "content": " Hi ", "n": 2}, {"role": "assistant", "content": "Yo", "n": 1}],
    "words": ["b", "A", "c", "B"], "html": "<a href=\"x\">&'</a>", "q": "it's \"q\"", "lines": "a\nb\n\nc", "mixed": [1, "a", None, True, 2.0],
    "big": 9007199254740993, "small": 1e-7, "large": 1e22, "tab": "a\tb\\", "csv": "a,b,,c",
}

EXPRESSIONS = r"""
s|u|sp|n|f
s
u
t
no
nil
e
l
le
d
de
mixed
nested
ms
missing
missing.x
missing['x']
missing()
missing + 1
missing ~ 'a'
missing == missing
missing is defined
missing is undefined
not missing
missing or 'x'
missing and 'x'
[missing]
(missing,)
missing|length
missing|list
missing in l
'a' in missing
missing < 1
d.missing
d.missing.x
d['missing']
d.missing is defined
d.missing|default('z')
1 + 2
1 - 2
2 * 3
7 / 2
6 / 2
7 // 2
-7 // 2
7 % 3
-7 % 3
7 % -3
7.5 % 2
-7.5 // 2
2 ** 10
2 ** -1
2 ** 0.5
-2 ** 2
2 ** 3 ** 2
1 / 0
1 // 0
1 % 0
1.0 / 0
1 + 2 * 3
(1 + 2) * 3
10 - 3 - 2
1 + 1.5
'a' + 'b'
'a' + 1
1 + 'a'
[1] + [2]
(1,) + (2,)
[1] + (2,)
'ab' * 3
3 * 'ab'
[1, 2] * 2
'ab' * -1
'a' ~ 1 ~ none ~ true ~ 1.5
1 ~ 2 + 3
true + true
-true
+true
- - 3
-s
not true
not not 1
1 == 1.0
1 == true
'1' == 1
[1, 2] == [1, 2]
[1, 2] == (1, 2)
{'a': 1} == {'a': 1.0}
none == false
1 != 2
1 < 2
1 < 2 < 3
1 < 3 < 2
3 > 2 > 1
1 < 2 == true
'a' < 'b'
'Z' < 'a'
[1, 2] < [1, 3]
[1] < [1, 2]
'a' < 1
none < 1
1 <= 1.0
2 >= 3
1 in [1, 2]
1.0 in [1, 2]
'1' in [1, 2]
'ell' in s
1 in s
'b' in d
'x' in d
[] in d
1 not in l
not 1 in l
'a' in ('a', 'b')
1 and 2
0 and 2
0 or 2
'' or none
1 if true else 2
1 if false else 2
1 if false
(1 if false) is defined
1 if false else 2 if false else 3
1 if true else 2 if true else 3
s.upper()
s.lower()
s.title()
s.swapcase
u.upper()
u.lower()
sp.strip()
sp.lstrip()
sp.rstrip()
'xxaxx'.strip('x')
'xyaxy'.lstrip('yx')
s.split()
s.split(' ')
s.split('o')
s.split('o', 1)
s.rsplit('o', 1)
s.split(None, 1)
' a  b c '.split(none, 1)
' a  b c '.rsplit(none, 1)
' a  b c '.split()
''.split()
''.split(',')
csv.split(',')
csv.split(',')[-1]
csv.split(',', maxsplit=1)
s.split('')
s.startswith('Hell')
s.startswith(('x', 'H'))
s.endswith('d')
s.endswith('x')
s.replace('o', '0')
s.replace('o', '0', 1)
'ab'.replace('', '-')
s.find('o')
s.find('q')
u.find('Ω')
s.rfind('o')
s.index('o')
s.index('q')
s.count('o')
s.count('')
','.join(['a', 'b'])
','.join('abc')
','.join([1])
'abc'.capitalize()
'ABC'.capitalize()
"it's a dOG".title()
"it's a dOG"|title
'a-b c(d [e {f <g'|title
'abc'.islower()
'ABC'.isupper()
''.islower()
'  '.isspace()
'abc'.removeprefix('a')
'abc'.removesuffix('c')
lines.splitlines()
'a\r\nb\rc'.splitlines()
s[0]
s[-1]
s[100]
s[1:3]
s[:5]
s[-3:]
s[::-1]
s[::2]
s[5:1:-1]
s[10:0:-3]
s[::0]
s['upper']()
s['x']
s.x
u[0]
u[2]
u[-1]
u[2:5]
u[::-1]
u|length
l[0]
l[-1]
l[5]
l[1:]
l[:-1]
l[::-1]
l['x']
l.0
nested.k.x.1.y
nested['k']['x'][1]['y']
(1, 2, 3)[1]
(1, 2, 3)[:2]
[1, 2, 3][-2:]
d.b
d['b']
d.items
d['items']
d.items()
d.keys()
d.values()
d.keys()|list
d.items()|list
d.get('b')
d.get('q')
d.get('q', 9)
d.get('a')[1]
d[1:2]
d[[]]
{}['a'] is defined
{'a': 1}.a
{'a': {'b': 2}}.a.b
{1: 2}[1]
{1: 2, 1.0: 3}
{'a': 1, 'a': 2}
{[]: 1}
{(1, 2): 3}
l.append(4)
l.append is defined
d.update({'x': 1})
l.count(1)
l.index(2)
l.index(9)
(1, 2, 1).count(1)
n.x
n.foo is defined
''.__class__
s._x is defined
()
(1,)
(1, 2)
[1, [2, (3,)], {'a': none}]
{}
{'a': 'b', "c": "d'e"}
'\n\t\\\'"'
['\n\t\\\'"']
['\x00\x7f\u00e9\u200b\u2028']
["it's"]
['it"s']
[q]
'\u00e9\x41\101'
'\q'
'a' 'b'
"a
b"
1_000
1e3
1.5e-7
1e16
1e15
123456789012345680.0
0.1 + 0.2
1.0
-0.0
1e100
small
large
big
big + 1
1.0 * 3
10 / 5
s|upper
s|lower
s|capitalize
s|title
sp|trim
sp|trim|length
'xax'|trim('x')
1|trim
none|trim
n|string
n|string|length
[1, 2]|string
none|string
s|length
l|length
d|length
n|length
l|count
s|first
s|last
l|first
l|last
le|first
le|last
d|first
d|last
le|first is defined
l|join
l|join(', ')
[1, none, 'a']|join('-')
s|join('.')
ms|join(',', attribute='role')
ms|join(',', 'role')
missing|default('x')
missing|d('x')
missing|default
e|default('x')
e|default('x', true)
none|default('x')
none|default('x', boolean=true)
s|tojson
u|tojson
d|tojson
ms|tojson
mixed|tojson
html|tojson
q|tojson
tab|tojson
f|tojson
big|tojson
small|tojson
none|tojson
true|tojson
(1, 2)|tojson
missing|tojson
{1: 2, none: 3, true: 4, 1.5: 5}|tojson
{(1,): 2}|tojson
'\u2028\x7f\x01'|tojson
d|tojson(indent=2)
nested|tojson(indent=4)
le|tojson(indent=2)
d|tojson(2)
d|tojson(indent=0)
d|tojson(indent='--')
d|tojson(separators=(',', ':'))
d|tojson(separators=(',', ':'), indent=1)
d|tojson(sort_keys=true)
u|tojson(ensure_ascii=true)
'5'|int
' 5 '|int
'5.7'|int
'x'|int
'x'|int(3)
'x'|int(default=3)
'1_0'|int
'-5'|int
'+5'|int
5.9|int
-5.9|int
none|int
true|int
[]|int
''|int
'1e3'|int
'5'|float
'x'|float
'x'|float(1.5)
'inf'|float
'nan'|float
'1e3'|float
5|float
none|float
'0x10'|float
s|list
d|list
l|list
(1, 2)|list
n|list
d|items|list
missing|items|list
l|items|list
d|dictsort
{'b': 1, 'A': 2, 'c': 0}|dictsort
{'b': 1, 'A': 2, 'c': 0}|dictsort(true)
{'b': 1, 'A': 2, 'c': 0}|dictsort(by='value')
{'b': 1, 'A': 2, 'c': 0}|dictsort(reverse=true)
{'b': 1, 'A': 2, 'c': 0}|dictsort(false, 'x')
s|replace('o', '0')
s|replace('o', '0', 1)
12321|replace(2, 'x')
s|replace('l')
ms|map(attribute='role')|list
ms|map(attribute='n')|list
ms|map(attribute='n', default=0)|list
ms|map(attribute='x.y', default=0)|list
ms|map(attribute='x.y')|list
words|map('upper')|list
words|map('replace', 'b', 'x')|list
words|map('nope')|list
[[1, 2], [3]]|map('first')|list
[[1, 2], [3, 4]]|map(attribute=1)|list
[[1, 2], [3, 4]]|map(attribute='1')|list
missing|map('upper')|list
mixed|select|list
mixed|select('string')|list
mixed|reject('string')|list
mixed|reject|list
[1, 2, 3, 4]|select('odd')|list
[1, 2, 3, 4]|select('divisibleby', 2)|list
[1, 2, 3, 4]|select('gt', 2)|list
[1, 2, 3]|select('in', [1, 3])|list
ms|selectattr('role', 'equalto', 'user')|list
ms|selectattr('role', '==', 'user')|map(attribute='content')|first
ms|selectattr('n')|list|length
ms|selectattr('n', 'defined')|list|length
ms|rejectattr('role', 'eq', 'user')|map(attribute='role')|join
ms|rejectattr('role', 'in', ['user', 'system'])|list
ms|selectattr|list
ms|selectattr('role', 'equalto', 'user')|length
l|sort
l|sort(reverse=true)
words|sort
words|sort(case_sensitive=true)
ms|sort(attribute='role')|map(attribute='role')|list
ms|sort(attribute='n')
ms[1:]|sort(attribute='n')|map(attribute='n')|list
mixed|sort
s|sort
d|sort
l|reverse|list
s|reverse
u|reverse
d|reverse|list
words|unique|list
words|unique(case_sensitive=true)|list
[1, 1.0, true, '1']|unique|list
[[1], [1]]|unique|list
2.5|round
3.5|round
2.675|round(2)
42|round
42.55|round(1, 'floor')
42.55|round(1, 'ceil')
-2.5|round
1234.5|round|int
true|round
'a'|round
-5|abs
-5.5|abs
true|abs
'a'|abs
lines|indent
lines|indent(2)
lines|indent(2, true)
lines|indent(2, first=true, blank=true)
lines|indent('> ')
1|indent
html|escape
html|e
html|safe
s|safe|length
html|e|e
html|e|safe
(html|e) ~ '<'
[1, 2, 3]|sum
ms[1:]|sum(attribute='n')
[1, 2]|sum(start=10)
['a']|sum
l|min
l|max
words|min
words|max
le|min
le|max is defined
s is defined
s is string
n is string
n is number
f is number
true is number
true is integer
n is integer
f is float
n is float
d is mapping
l is mapping
s is iterable
l is iterable
n is iterable
d is iterable
s is sequence
l is sequence
d is sequence
n is sequence
(1,) is sequence
missing is sequence
missing is iterable
d.items() is iterable
d.items() is sequence
nil is none
n is none
t is true
1 is true
no is false
0 is false
t is boolean
1 is boolean
n is odd
n is even
n is divisibleby 7
n is divisibleby(2)
n is eq 7
n is equalto(7)
n is ne 7
n is lt 8
n is le 7
n is gt 7
n is ge 7
n is lessthan 8
n is greaterthan 8
n is in [7, 8]
n is in(l)
n is not in l
s is not string
s is not none
n is not defined
'abc' is lower
'ABC' is upper
'aBc' is lower
range is callable
s is callable
s.upper is callable
n is nope
s is string and n is number
s is string or missing.x
s is defined and s
n is odd == true
not n is odd
n is odd if t else 0
range(3)
range(3)|list
range(1, 4)|list
range(5, 0, -2)|list
range(0)|list
range(3)|length
range(3)[1]
range(3)[-1]
range(1, 2, 0)
range(1.5)
range(1000000)
range('a')
dict()
dict(a=1, b='x')
dict({'a': 1}, b=2)
dict([('a', 1)])
dict([1])
namespace(a=1).a
namespace(a=1).b
namespace(a=1).b is defined
namespace({'a': 1})['a']
namespace(_a=1)
raise_exception('bad')
nope()
nope.x()
s()
s.nope()
1()
s.upper(1)
loop
self
true and 1
True
None
False
none
'%s' ~ 1
1 if 1 else
1 +
(1
[1
{'a'}
'abc
1 = 2
a b
|upper
s|
s|nope
s.
s[
1.2.3
012
1 ?? 2
s if s is defined else 'none'
(s if t) ~ '!'
l[0] + l[-1]
l|map('string')|join(',')
ms[0].content ~ ms[-1]['content']
ms[0]['role'] == 'system' and ms|length > 1
ms[1:][0].role
(ms|first).content
(ms|last)['content']|trim
ms|last|tojson
ms | map(attribute="content") | map("trim") | join("|")
'content' in ms[0]
ms[0].content is string and ms[0].content is not mapping
d.a is iterable and d.a is not string and d.a is not mapping
n if n > 5 else (neg if neg < 0 else 0)
(n > 5) ~ (n < 5)
-n|abs
(-n)|abs
-n ** 2
2 * -3
1 - -1
[1, 2,]
(1, 2,)
{'a': 1,}
[1, 2, 3].index(2)
'a,b'.split(',')|last
's'.join(words)
' '.join(words).title()
'x' * n
n // 2 * 2 == n
(n // 2) * 2 != n
n is odd and n % 2 == 1
'%' in '100%'
'a' if 0 else 'b' if '' else 'c'
s|length > 5
s|length is even
s|upper|lower|title
s|replace('l', '')|length
[l, d]|tojson
[[], {}, '', none]|map('length')|list
[[], {}, '']|map('length')|list
l|sort|join('<')
l|sort|first + 1
'\U0001f600'
'\ud83d'
'é'|tojson
'é'|upper
'éa'[0]
'日本語'[1]
'日本語'|length
'日本語'.split('本')
'日本語'|list
'日本語'|reverse
'日本語'.find('語')
['日本語', '\xa0', '\u3000']
'\u3000x\u3000'|trim
'\x1cx'.strip()
'a\u2028b'.splitlines()
'\x85'.isspace()
'ǆ'.title()
'ñ'.upper() ~ 'Ñ'.lower()
'Привет'.upper()
'Привет'|title
""".strip("\n").replace('"a\nb"', '"a b"').split("\n")

TEMPLATES = [
    "a\n", "a\n\n", "a\r\nb\rc", "", "\n", "{{ s }}\n{{ n }}\n", "{{- s -}}", "  {{- s -}}  x", "  {{ s }}  x", "{{+ n }}", "{{ s +}}",
    "{% if t %}\nyes\n{% endif %}\n", "  {% if t %}\n  yes\n  {% endif %}\nend", "  {%+ if t %}\n  yes\n  {%+ endif %}\nend",
    "  {%- if t -%}\n  yes\n  {%- endif -%}\nend", "{% if t +%}\nyes{% endif +%}\nend", "x  {% if t %} y {% endif %} z",
    "{# a comment #}\nx", "  {# a comment #}\nx", "x {#- c -#} y", "{# c +#}\nx", "{#\n multi\n#}x", "{# {{ n }} {% if %} #}x",
    "{% raw %}{{ n }}{% if %}{% endraw %}", "{% raw %}\n a \n{% endraw %}\nb", "x {%- raw -%} {{ y }} {%- endraw -%} z", "  {% raw %}a\n  {% endraw %}b",
    "{% raw %}x", "{# x", "{{ n", "{% if t", "{% if t %}x", "{% endif %}", "{% else %}", "{% nope %}", "{% for %}", "{% set %}", "{{ }}", "{% %}",
    "{% if no %}a{% elif n > 5 %}b{% else %}c{% endif %}", "{% if no %}a{% elif no %}b{% else %}c{% endif %}", "{% if no %}a{% endif %}",
    "{% if missing %}a{% else %}b{% endif %}", "{% if t %}{% if no %}1{% else %}2{% endif %}{% endif %}",
    "{% for x in l %}{{ x }},{% endfor %}", "{% for x in le %}{{ x }}{% else %}none{% endfor %}", "{% for x in l %}{% else %}none{% endfor %}",
    "{% for x in l if x > 1 %}{{ x }}{{ loop.index }}{{ loop.length }}{% else %}none{% endfor %}", "{% for x in l if x > 9 %}{{ x }}{% else %}none{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}",
    "{% for k, v in d|dictsort %}{{ k }}={{ v }};{% endfor %}", "{% for a, b in [[1, 2], (3, 4), 'xy'] %}{{ a }}{{ b }}{% endfor %}",
    "{% for a, b in [[1, 2, 3]] %}{{ a }}{% endfor %}", "{% for a, b in [1] %}{{ a }}{% endfor %}", "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for x in s %}{{ x }}.{% endfor %}", "{% for x in missing %}{{ x }}{% else %}e{% endfor %}", "{% for x in n %}{{ x }}{% endfor %}", "{% for x in nil %}{% endfor %}",
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }};{% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}", "{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}",
    "{% for x in ms %}{{ loop.previtem.role if loop.previtem else '-' }}{% endfor %}", "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for x in l %}{{ loop.nope }}{{ loop.nope is defined }}{% endfor %}",
    "{% for x in l %}{% for y in 'ab' %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}", "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% for x in l %}{% for y in l %}{% if y == 1 %}{% break %}{% endif %}{{ y }}{% endfor %}|{% endfor %}",
    "{% break %}", "{% for x in range(3) %}{{ x }}{% endfor %}", "{% for x in l|map('string') %}{{ x }}{{ loop.last }}{% endfor %}", "{% for x in l|reverse %}{{ x }}{% endfor %}",
    "{% for loop in l %}{% endfor %}", "{{ loop }}", "{% for x in l %}{% set loop = 1 %}{% endfor %}", "{% for x in 1, 2 %}{{ x }}{% endfor %}", "{% for x in l + [9] if x != 2 %}{{ x }}{% endfor %}",
    "{% set x = 1 %}{{ x }}", "{% set x = 1 %}{% for i in l %}{{ x }}{% set x = i %}{{ x }}{% endfor %}{{ x }}", "{% if t %}{% set x = 5 %}{% endif %}{{ x }}", "{% if no %}{% set x = 5 %}{% endif %}{{ x is defined }}",
    "{% set n = n + 1 %}{{ n }}", "{% set x, y = 1, 2 %}{{ x }}{{ y }}", "{% set x = 1, 2 %}{{ x }}", "{% set x, y = l %}", "{% set (x, y) = 'ab' %}{{ y }}{{ x }}", "{% set x = 1 if no %}{{ x }}",
    "{% set ns = namespace(c=0) %}{% for i in l %}{% set ns.c = ns.c + i %}{% endfor %}{{ ns.c }}", "{% set ns = namespace() %}{% set ns.a = 1 %}{% set ns.b = ns.a + 1 %}{{ ns.b }}{{ ns.c is defined }}",
    "{% set d.x = 1 %}", "{% set missing.x = 1 %}", "{% set ns = namespace() %}{% set ns._x = 1 %}", "{% set ns = namespace(a=1, b=2) %}{% set ns.a, ns.b = ns.b, ns.a %}{{ ns.a }}{{ ns.b }}",
    "{% set x %}a{{ n }}b{% endset %}[{{ x }}]", "{% set x | upper %}a{{ n }}b{% endset %}[{{ x }}]", "{% set x | replace('a', 'c') | upper %}a{% endset %}{{ x }}", "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y is defined }}",
    "{% set x %}\n  a\n{% endset %}[{{ x }}]", "{% set ns = namespace() %}{% set ns.x %}hi{% endset %}{{ ns.x }}", "{% set none = 1 %}", "{% set true = 1 %}",
    "{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=5, a=4) }}{{ m() }}", "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}", "{% macro m(a) %}x{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}x{% endmacro %}{{ m(c=2) }}", "{% macro m(a) %}x{% endmacro %}{{ m(1, a=2) }}", "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m(x) %}{% if x > 0 %}{{ x }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(3) }}",
    "{% macro m() %}{{ n }}{{ y }}{% endmacro %}{% set y = 9 %}{{ m() }}", "{{ m() }}{% macro m() %}{% endmacro %}", "{% for i in l %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}", "{% macro m() %}{{ loop }}{% endmacro %}{% for i in l %}{{ m() }}{% endfor %}",
    "{% macro m() %}  a  {% endmacro %}[{{ m()|trim }}]", "{% macro m() -%}\n  a\n{%- endmacro %}[{{ m() }}]", "{% macro m() %}{% set q = 1 %}{% endmacro %}{{ m() }}{{ q is defined }}", "{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}{{ m(none) }}",
    "{% macro a(x) %}[{{ x }}]{% endmacro %}{% macro b(x) %}{{ a(x ~ '!') }}{% endmacro %}{{ b(1) }}", "{% macro m() %}{% for i in l %}{{ i }}{{ loop.index }}{% endfor %}{% endmacro %}{{ m() + 'x' }}", "{{ m }}{% macro m() %}{% endmacro %}",
    "{% filter upper %}a{{ n }}b{% endfilter %}", "{% filter replace('a', 'b') | upper %}aXa{% endfilter %}", "{% filter trim %}  a  {% endfilter %}|", "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}", "{% with %}{% set a = 1 %}{{ a }}{% endwith %}{{ a is defined }}",
    "{% with n = n + 1 %}{{ n }}{% endwith %}{{ n }}", "{% generation %}a{% endgeneration %}b", "{% generation %}\na\n{% endgeneration %}\nb", "{% generation %}{% set x = 1 %}{{ x }}{% endgeneration %}{{ x is defined }}",
    "{% for m in ms %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}", "{% set g = d|items %}{% for k, v in g %}{{ k }}{% endfor %}{% for k, v in g %}{{ k }}{% endfor %}.", "{% set g = l|map('string') %}{{ g|list }}{{ g|list }}", "{% set g = l|select %}{{ g|first }}{{ g|list }}",
    "{% set x = [] %}{% for i in l %}{% set x = x + [i] %}{% endfor %}{{ x }}", "{% set ns = namespace(x=[]) %}{% for i in l %}{% set ns.x = ns.x + [i * 2] %}{% endfor %}{{ ns.x|tojson }}", "{%set x=1%}{{x}}", "{%-set x=1-%} {{x}}", "{{'}}'}}", "{{ '{{' }}", "{{ {'a': {'b': 1}} }}", "{{ {'a': {'b': 1}}}}", "{{ [1, (2, 3)] }}",
    "{% if '%}' == '%}' %}x{% endif %}", "{{ 'a'\n}}\n{{ 'b' }}", "{ { n } }", "{n}", "{%", "}}", "%}", "{{ n }} %} }}", "a{{ n }}\n  {% if t %}b{% endif %}", "  {{ n }}{% if t %}\n  b{% endif %}", "\t{% if t %}x{% endif %}", "a\n  {#- c #}  {% if t %}x{% endif %}",
    "{% if t %}\n\nx{% endif %}", "{% for x in l -%}\n  {{ x }}\n{%- endfor %}", "{% for x in l %}\n{{ x }}\n{% endfor %}\n", "    {%- for x in l %}\n    {{ x }}\n    {%- endfor %}\n", "{% if t %}{{ raise_exception('x') }}{% endif %}", "{% if no %}{{ raise_exception('x') }}{% endif %}ok",
    "{% for m in ms if m.role != 'system' %}{{ m.role }}{% endfor %}", "{% set ns = namespace(f=false) %}{% for i in l if not ns.f %}{{ i }}{% set ns.f = true %}{% endfor %}", "{% set f = ms|selectattr('role', 'eq', 'user')|first %}{{ f.content }}", "{% set a = b = 1 %}", "{% if x = 1 %}{% endif %}",
    "{% for x in l %}{% continue %}{% else %}e{% endfor %}", "{% for x in l %}{{ x }}{% break %}{% else %}e{% endfor %}", "{{ {(1, 2): 3}[1, 2] }}", "x{#", "x{% raw %}", "{% filter length %}ab{% endfilter %}", "{% set g = n|map('upper') %}ok", "{{ l|sort(reverse='x') }}", "{{ 1, 2 }}", "{{ (1, 2)|join }}", "{% set x = {'a': 1} %}{{ x.a }}{{ x['a'] }}{{ x }}", "{% set x = namespace(d={'k': [1]}) %}{{ x.d.k[0] }}", "{% if s is string and n is number and not missing %}ok{% endif %}", "{% for c in [1, 2] recursive_no %}{% endfor %}",
    "{% if not (n is odd) %}a{% else %}b{% endif %}", "{% for i in range(2) %}{% for j in range(2) %}{{ i }}{{ j }} {% endfor %}{% endfor %}", "{% for i in l %}{{ i }}{% if not loop.last %}, {% endif %}{% endfor %}", "{% elif t %}", "{% if t %}{% endfor %}", "{% for x in l %}{% endif %}{% endfor %}", "{% macro %}{% endmacro %}",
]

SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": "What is 2 + 2?"}
ANSWER = {"role": "assistant", "content": "Four. "}
THINKING = {"role": "assistant", "content": "<think>\nadd them\n</think>\n\nFour."}
REASONED = {"role": "assistant", "content": "Four.", "reasoning_content": "add them"}
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "c12345678", "type": "function", "function": {"name": "add", "arguments": {"a": 2, "b": [2.0, "é<"]}}}]}
CALL_TEXT = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "add", "arguments": "{\"a\": 2}"}}]}
RESULT = {"role": "tool", "name": "add", "tool_call_id": "c12345678", "content": "4"}
PARTS = {"role": "user", "content": [{"type": "text", "text": "Look: "}, {"type": "image", "image": "x.png"}, {"type": "text", "text": "what?"}]}
TOOLS = [{"type": "function", "function": {"name": "add", "description": "Adds \"two\" <numbers>.", "parameters": {"type": "object", "properties": {"a": {"type": "number", "description": "first"}, "b": {"type": "array", "items": {"type": "number"}}}, "required": ["a"]}}}]
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}


def chats(*, more=None):
    turns = [[USER], [SYSTEM, USER], [USER, ANSWER, USER], [SYSTEM, USER, ANSWER, USER, THINKING], [USER, REASONED, USER], [USER, CALL, RESULT], [USER, CALL_TEXT, RESULT, RESULT, ANSWER, USER],
             [PARTS], [SYSTEM], [], [ANSWER, USER], [USER, USER]]
    plain = [{"messages": [{k: v for k, v in m.items() if v is not None} for m in messages], "add_generation_prompt": asks, **TOKENS} for messages in turns for asks in (True, False)]
    tooled = [{**chat, "tools": TOOLS} for chat in plain[::2]]
    return plain + tooled + [{**chat, **(more or {})} for chat in plain[:8]] * bool(more)


CHATML = """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou help.<|im_end|>\n' }}{% endif %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""

LLAMA = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set first_words = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set first_words = "" %}
{%- endif %}
{{- "<|head|>system<|/head|>\\n\\n" }}
{%- if builtin_tools is defined or tools is not none %}
    {{- "Surroundings: ipython\\n" }}
{%- endif %}
{%- if builtin_tools is defined %}
    {{- "Tools: " + builtin_tools | reject('equalto', 'code_interpreter') | join(", ") + "\\n\\n" }}
{%- endif %}
{{- "Today: " + date_string + "\\n\\n" }}
{%- if tools is not none and not tools_in_user_message %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- first_words }}
{{- "<|end|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|head|>' + message['role'] + '<|/head|>\\n\\n'+ message['content'] | trim + '<|end|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("One call at a time!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {%- if builtin_tools is defined and tool_call.name in builtin_tools %}
            {{- "<|tag|>" + tool_call.name + ".call(" }}
            {%- for arg_name, arg_val in tool_call.arguments | items %}
                {{- arg_name + '="' + arg_val ~ '"' }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- endif %}
            {%- endfor %}
            {{- ")" }}
        {%- else %}
            {{- '{"name": "' + tool_call.name + '", ' }}
            {{- '"parameters": ' }}
            {{- tool_call.arguments | tojson }}
            {{- "}" }}
        {%- endif %}
        {{- "<|eom|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|head|>ipython<|/head|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|end|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|head|>assistant<|/head|>\\n\\n' }}
{%- endif %}
"""

QWEN25 = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You are a test.' }}
    {%- endif %}
    {{- "\\n\\n# Functions\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>\\n{\\"name\\": <name>}<|im_end|>\\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}
            {{- '\\n' + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

QWEN3 = """{%- set ns = namespace(many=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.many and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.many = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if message.role == "assistant" %}
        {%- set reasoning = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or (not loop.last and reasoning)) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}{{- '\\n' }}{%- endif %}
                {%- set tool_call = tool_call.function if tool_call.function else tool_call %}
                {{- '<tool_call>\\n{"name": "' ~ tool_call.name ~ '", "arguments": ' }}
                {%- if tool_call.arguments is string %}{{- tool_call.arguments }}{%- else %}{{- tool_call.arguments | tojson }}{%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""

MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("Roles must alternate!") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" }}{%- endif %}
            {%- endfor %}
            {{- "[/TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("Ids have 9 characters!") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" + eos_token }}{%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[RESULTS] {"content": ' + content|string + ', "id": "' + message.tool_call_id + '"}[/RESULTS]' }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles!") }}
    {%- endif %}
{%- endfor %}
"""

GEMMA = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set prefix = messages[0]['content'] + '\n\n' -%}
    {%- else -%}
        {%- set prefix = messages[0]['content'][0]['text'] + '\n\n' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Roles must alternate") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<turn>' + role + '\n' + (prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '</turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<turn>model\n'}}
{%- endif -%}
"""

PHI = """{% for message in messages %}{% if message['role'] == 'system' %}{{'<|system|>' + '\n' + message['content'] + '<|end|>' + '\n'}}{% elif (message['role'] == 'user') %}{{'<|user|>' + '\n' + message['content'] + '<|end|>' + '\n' + '<|assistant|>' + '\n'}}{% elif message['role'] == 'assistant' %}{% generation %}{{message['content'] + '<|end|>' + '\n'}}{% endgeneration %}{% endif %}{% endfor %}"""

DEEPSEEK = """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(is_first=false, is_tool=false, is_output_first=true, system_prompt='') %}{%- for message in messages %}{%- if message['role'] == 'system' %}{% set ns.system_prompt = message['content'] %}{%- endif %}{%- endfor %}{{bos_token}}{{ns.system_prompt}}{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<|User|>' + message['content']}}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' in message %}{%- set ns.is_tool = false -%}{%- for tool in message['tool_calls']%}{%- if not ns.is_first %}{{'<|Assistant|><|calls|>' + tool['type'] + '<|sep|>' + tool['function']['name'] + '\n' + '```json' + '\n' + (tool['function']['arguments'] if tool['function']['arguments'] is string else tool['function']['arguments']|tojson) + '\n' + '```'}}{%- set ns.is_first = true -%}{%- else %}{{'\n' + tool['type']}}{%- endif %}{%- endfor %}{{'<|end of sentence|>'}}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' not in message %}{%- if ns.is_tool %}{{'<|outputs end|>' + message['content'] + '<|end of sentence|>'}}{%- set ns.is_tool = false -%}{%- else %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<|Assistant|>' + content + '<|end of sentence|>'}}{%- endif %}{%- endif %}{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}{%- if ns.is_output_first %}{{'<|outputs|><|output|>' + message['content'] + '<|/output|>'}}{%- set ns.is_output_first = false %}{%- else %}{{'\n<|output|>' + message['content'] + '<|/output|>'}}{%- endif %}{%- endif %}{%- endfor -%}{% if ns.is_tool %}{{'<|outputs end|>'}}{% endif %}{% if add_generation_prompt and not ns.is_tool %}{{'<|Assistant|><think>\\n'}}{% endif %}"""

HERMES = """{%- macro json_to_python_type(json_spec) %}
{%- set basic_type_map = {
    "string": "str",
    "number": "float",
    "integer": "int",
    "boolean": "bool"
} %}
{%- if basic_type_map[json_spec.type] is defined %}
    {{- basic_type_map[json_spec.type] }}
{%- elif json_spec.type == "array" %}
    {{- "list[" + json_to_python_type(json_spec['items']) + "]"}}
{%- elif json_spec.type == "object" %}
    {%- if json_spec.additionalProperties is defined %}
        {{- "dict[str, " + json_to_python_type(json_spec.additionalProperties) + ']'}}
    {%- else %}
        {{- "dict" }}
    {%- endif %}
{%- elif json_spec.type is iterable %}
    {{- "Union[" }}
    {%- for t in json_spec.type %}
        {{- json_to_python_type({"type": t}) }}
        {%- if not loop.last %}
            {{- "," }}
        {%- endif %}
    {%- endfor %}
    {{- "]" }}
{%- else %}
    {{- "Any" }}
{%- endif %}
{%- endmacro %}
{{- bos_token }}
{{- '<|im_start|>system\n' }}
{%- if tools %}
{{- "Tools: <tools> " }}
{%- for tool in tools %}
    {%- if tool.function is defined %}
        {%- set tool = tool.function %}
    {%- endif %}
    {{- '{"type": "function", "function": ' }}
    {{- '{"name": "' + tool.name + '", ' }}
    {{- '"description": "' + tool.name + '(' }}
    {%- for param_name, param_fields in tool.parameters.properties|items %}
        {{- param_name + ": " + json_to_python_type(param_fields) }}
        {%- if not loop.last %}
            {{- ", " }}
        {%- endif %}
    {%- endfor %}
    {{- ")" }}
    {%- if tool.return is defined %}
        {{- " -> " + json_to_python_type(tool.return) }}
    {%- endif %}
    {{- " - " + tool.description + "\n\n" }}
    {%- for param_name, param_fields in tool.parameters.properties|items %}
        {%- if loop.first %}
            {{- "    Args:\n" }}
        {%- endif %}
        {{- "        " + param_name + "(" + json_to_python_type(param_fields) + "): " + param_fields.description|default('')|trim }}
    {%- endfor %}
    {{- '", "parameters": ' }}
    {%- if tool.parameters.properties | length == 0 %}
        {{- "{}" }}
    {%- else %}
        {{- tool.parameters|tojson }}
    {%- endif %}
    {{- "}" }}
    {%- if not loop.last %}
        {{- "\n" }}
    {%- endif %}
{%- endfor %}
{{- " </tools>" }}
{%- endif %}
{{- '<|im_end|>\n' }}
{%- for message in messages %}
    {%- if message.role == "user" or message.role == "system" or (message.role == "assistant" and message.tool_calls is not defined) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
    {%- for tool_call in message.tool_calls %}
       {{- '\n<tool_call>\n' }}
           {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '{' }}
            {{- '"name": "' }}
            {{- tool_call.name }}
            {{- '"' }}
            {{- ', '}}
            {%- if tool_call.arguments is defined %}
                {{- '"arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments|tojson }}
                {%- endif %}
            {%- endif %}
             {{- '}' }}
            {{- '\n</tool_call>' }}
    {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.previtem and loop.previtem.role != "tool" %}
            {{- '<|im_start|>tool\n' }}
        {%- endif %}
        {{- '<tool_response>\n' }}
        {{- message.content }}
        {%- if not loop.last %}
            {{- '\n</tool_response>\n' }}
        {%- else %}
            {{- '\n</tool_response>' }}
        {%- endif %}
        {%- if not loop.last and loop.nextitem.role != "tool" %}
            {{- '<|im_end|>' }}
        {%- elif loop.last %}
            {{- '<|im_end|>' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
"""

CHATS = [
    (CHATML, chats()),
    (LLAMA, chats(more={"builtin_tools": ["add", "code_interpreter"], "date_string": "1 Jan 2025"})),
    (QWEN25, chats()),
    (QWEN3, chats(more={"enable_thinking": False})),
    (MISTRAL, chats()),
    (GEMMA, chats()),
    (PHI, chats()),
    (DEEPSEEK, chats()),
    (HERMES, chats()),
]
