/** Control characters, line and paragraph separators, bidi controls and other format characters. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/** Whether a name has characters that are not seen or change the direction of text: it could look like another name. */
export function hasHiddenCharacters(name: string): boolean {
  return HIDDEN.test(name);
}
