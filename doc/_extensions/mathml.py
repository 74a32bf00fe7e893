"""Mathematics as MathML, which browsers draw by themselves: no script, no font, no network."""

from docutils import nodes
from latex2mathml.converter import convert


def render_inline(translator, node):
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def render_block(translator, node):
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    translator.body.append(convert(node.astext(), display="block"))
    translator.body.append("</div>")
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (render_inline, None), (render_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
