/** Text for a log or a terminal. Keys and paths in it are other people's: none may begin a line of its own or move the cursor. */
export function oneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\u2028\u2029]/gu, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
