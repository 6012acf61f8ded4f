// Every text of the document becomes a text node, never markup, so a description cannot carry a script; the page's
// content policy would refuse it as well.

/** Creates an element: attributes by name, children as nodes or text, nothing for null. */
export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === 'onclick') node.addEventListener('click', value);
    else node.setAttribute(key, value === true ? '' : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Paragraphs and `code`, the two things descriptions use. */
export function prose(text) {
  return String(text ?? '')
    .split(/\n{2,}/)
    .filter((paragraph) => paragraph.trim() !== '')
    .map((paragraph) => el('p', {}, inline(paragraph)));
}

export function inline(text) {
  return String(text)
    .split(/(`[^`]+`)/)
    .map((part) => (part.length > 2 && part.startsWith('`') && part.endsWith('`') ? el('code', {}, part.slice(1, -1)) : part));
}
