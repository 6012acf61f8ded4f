/** Text for a log or a terminal. Names in it come from outside: control characters are escaped, so that none starts a line or moves the cursor. */
export function oneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\u2028\u2029]/gu, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
