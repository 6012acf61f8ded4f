/**
 * The parts of a permission that all have to hold, each once. Rules of the application, the controller and the route add up:
 * `isStaff & (isStaff & bySession)` is `isStaff` and `bySession`. Alternatives are one part.
 */
export function permissionTerms(text: string): readonly string[] {
  return [...new Set(termsOf(text))];
}

function termsOf(text: string): string[] {
  const inner = unwrapped(text);
  if (splitAt(' | ', inner).length > 1) return [text];
  const parts = splitAt(' & ', inner);
  return parts.length > 1 ? parts.flatMap(termsOf) : inner === text ? [text] : termsOf(inner);
}

/** Without the parentheses around the whole. */
function unwrapped(text: string): string {
  if (!text.startsWith('(') || !text.endsWith(')')) return text;
  const inner = text.slice(1, -1);
  let depth = 0;
  for (const character of inner) {
    depth += character === '(' ? 1 : character === ')' ? -1 : 0;
    if (depth < 0) return text;
  }
  return inner;
}

/** Not inside parentheses. */
function splitAt(operator: string, text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let index = 0; index < text.length; index += 1) {
    depth += text[index] === '(' ? 1 : text[index] === ')' ? -1 : 0;
    if (depth !== 0 || !text.startsWith(operator, index)) continue;
    parts.push(text.slice(start, index));
    start = index + operator.length;
  }
  return [...parts, text.slice(start)];
}
