/** The offset of the key that a path names in a JSON text. The text was parsed before, so it is valid; of repeated keys the last one counts. */
export function jsonKeyOffset(text: string, path: readonly string[]): number | undefined {
  let at = skipBlanks(text, 0);
  let found: number | undefined;
  for (const key of path) {
    const member = lastMember(text, at, key);
    if (member === undefined) return undefined;
    found = member.keyAt;
    at = member.valueAt;
  }
  return found;
}

interface Member {
  readonly keyAt: number;
  readonly valueAt: number;
}

function lastMember(text: string, objectAt: number, key: string): Member | undefined {
  if (text[objectAt] !== '{') return undefined;
  let found: Member | undefined;
  let at = skipBlanks(text, objectAt + 1);
  while (text[at] === '"') {
    const keyEnd = skipString(text, at);
    const valueAt = skipBlanks(text, skipBlanks(text, keyEnd) + 1);
    if (JSON.parse(text.slice(at, keyEnd)) === key) found = { keyAt: at, valueAt };
    at = skipBlanks(text, skipValue(text, valueAt));
    if (text[at] === ',') at = skipBlanks(text, at + 1);
  }
  return found;
}

function skipBlanks(text: string, at: number): number {
  let end = at;
  while (text[end] === ' ' || text[end] === '\n' || text[end] === '\r' || text[end] === '\t') end++;
  return end;
}

/** The offset behind a string that begins here. */
function skipString(text: string, at: number): number {
  let end = at + 1;
  while (end < text.length && text[end] !== '"') end += text[end] === '\\' ? 2 : 1;
  return end + 1;
}

function skipValue(text: string, at: number): number {
  let depth = 0;
  let end = at;
  while (end < text.length) {
    const character = text[end]!;
    if (character === '"') end = skipString(text, end);
    else {
      if (character === '{' || character === '[') depth++;
      else if (character === '}' || character === ']') depth--;
      // Behind a number, true, false or null: the end of what holds it.
      if (depth < 0 || (depth === 0 && character === ',')) return end;
      end++;
    }
    if (depth === 0 && (character === '"' || character === '}' || character === ']')) return end;
  }
  return end;
}
