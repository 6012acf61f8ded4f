import { dbErrors } from '../errors.ts';

/**
 * PostgreSQL refuses U+0000 and both drivers would silently replace half a surrogate pair with U+FFFD. Refusing
 * both everywhere keeps the two databases alike and text unchanged.
 */
export function assertStorableText(text: string): string {
  if (isStorableText(text)) return text;
  throw dbErrors.value_not_storable({ detail: 'Text must not contain U+0000 or half of a surrogate pair.' });
}

export function isStorableText(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/** In JSON text the same two hide behind escapes: \u0000 and \ud800–\udfff (JSON.stringify escapes only lone ones). */
const UNSTORABLE_ESCAPE = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f][0-9a-f]{2})/;

export function assertStorableJson(text: string): string {
  if (!text.includes('\\u') || !UNSTORABLE_ESCAPE.test(text)) return text;
  throw dbErrors.value_not_storable({ detail: 'JSON must not contain U+0000 or half of a surrogate pair.' });
}
