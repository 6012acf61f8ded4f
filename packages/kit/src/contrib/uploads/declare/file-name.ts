/** Longest file name in a key. */
const NAME_LENGTH_MAX = 100;
/** Longest name kept for people. */
export const DISPLAY_LENGTH_MAX = 255;
/** Names Windows takes for devices, with any extension. */
const RESERVED = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)/i;
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for; bidirectional controls reorder what people read
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** The last part of a path, as its name and its extension. */
function splitName(given: string): { readonly base: string; readonly extension: string } {
  const last = given.replaceAll(INVISIBLE, '').split(/[/\\]/).at(-1)?.trim() ?? '';
  if (/^\.*$/.test(last)) return { base: 'file', extension: '' };
  const extension = /[^.](\.[A-Za-z0-9]{1,16})$/u.exec(last)?.[1] ?? '';
  return { base: last.slice(0, last.length - extension.length), extension };
}

/** The name as people see it: the last part of a path, without characters that hide or reorder others. */
export function displayName(given: string): string {
  const { base, extension } = splitName(given);
  return `${Array.from(base)
    .slice(0, DISPLAY_LENGTH_MAX - extension.length)
    .join('')}${extension}`;
}

/** The name in a key: ASCII letters, digits, `.`, `_` and `-`, at most 100, the extension kept. No path, no device, nothing hidden. */
export function safeFileName(given: string): string {
  const { base, extension } = splitName(given);
  const ascii = base
    .normalize('NFKD')
    .replaceAll(/\p{Mark}/gu, '')
    .replaceAll(/[^A-Za-z0-9._-]+/g, '_')
    .replaceAll(/\.{2,}/g, '.')
    .replaceAll(/^[._-]+|[._-]+$/g, '');
  const named = ascii === '' ? 'file' : RESERVED.test(ascii) ? `file-${ascii}` : ascii;
  return `${named.slice(0, NAME_LENGTH_MAX - extension.length).replaceAll(/[._-]+$/g, '')}${extension}`;
}

/** `Content-Disposition` of a download: the ASCII name for old clients, the real one for the others (RFC 6266). */
export function contentDisposition(kind: 'inline' | 'attachment', fileName: string): string {
  const encoded = encodeURIComponent(fileName.toWellFormed()).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `${kind}; filename="${safeFileName(fileName)}"; filename*=UTF-8''${encoded}`;
}
