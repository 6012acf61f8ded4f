import { filetypeinfo } from 'magic-bytes.js';

/** `image/png`, without parameters, in lower case; null when it is not a media type. */
export function mediaType(given: string): string | null {
  const type = given.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  return /^[a-z0-9!#$&^_.+-]{1,127}\/[a-z0-9!#$&^_.+-]{1,127}$/.test(type) ? type : null;
}

/** `*` + `/*` takes any type, `image/*` a family without SVG, which is a program; anything else is exact. */
export function allowsType(allowed: readonly string[], type: string): boolean {
  return allowed.some(
    (range) =>
      range === '*/*' || range === type || (range.endsWith('/*') && type.startsWith(range.slice(0, -1)) && type !== 'image/svg+xml'),
  );
}

/** Shown by browsers without running anything in them. */
const RASTER: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/bmp']);

export function isRasterImage(type: string): boolean {
  return RASTER.has(type);
}

/** How many bytes the content is judged by. */
export const SNIFFED_BYTES = 4096;

/** Other names of what the signatures call by one. */
const ALIASES: Readonly<Record<string, string>> = {
  'image/jpg': 'image/jpeg',
  'image/heic': 'image/heif',
  'image/vnd.microsoft.icon': 'image/x-icon',
  'audio/wav': 'audio/x-wav',
  'audio/wave': 'audio/x-wav',
  'audio/mp3': 'audio/mpeg',
  'audio/mp4': 'video/mp4',
  'audio/ogg': 'application/ogg',
  'video/ogg': 'application/ogg',
  'video/webm': 'audio/webm',
  'application/x-gzip': 'application/gzip',
  'application/x-zip-compressed': 'application/zip',
};

/** Types outside image, audio and video that always begin with a signature. */
const SIGNED: ReadonlySet<string> = new Set([
  'application/pdf',
  'application/zip',
  'application/gzip',
  'application/x-7z-compressed',
  'application/ogg',
  'application/msword',
  'application/vnd.ms-excel',
  'application/vnd.ms-powerpoint',
  'application/vnd.oasis.opendocument.text',
  'application/vnd.oasis.opendocument.spreadsheet',
  'application/vnd.oasis.opendocument.presentation',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  'application/vnd.openxmlformats-officedocument.presentationml.presentation',
]);

const TEXT = /^(?:text\/.*|application\/(?:json|xml|javascript|yaml|x-ndjson|x-yaml|.*\+(?:json|xml))|image\/svg\+xml)$/;
/** Signatures that are text themselves: a file that begins so is not plain text, whatever its author says. */
const TEXT_SIGNATURES: ReadonlySet<string> = new Set(['application/pdf', 'image/gif']);

/**
 * Whether the first bytes can be what the type says. Types with signatures must show theirs; text must be valid text; what has no signature cannot be
 * checked. Nothing is unpacked: an archive counts by its first bytes.
 */
export function contentMatches(type: string, head: Uint8Array): boolean {
  if (type === 'application/octet-stream') return true;
  const found = new Set(filetypeinfo(head).map(({ mime }) => mime ?? ''));
  if (TEXT.test(type)) {
    if (!isText(head) || [...TEXT_SIGNATURES].some((signature) => found.has(signature))) return false;
    return type !== 'image/svg+xml' || /<svg[\s>]/.test(Buffer.from(head).toString('utf8'));
  }
  const name = ALIASES[type] ?? type;
  if (found.has(name) || found.has(type)) return true;
  return !SIGNED.has(name) && !/^(?:image|audio|video)\//.test(name);
}

/** No control characters but those of text, and no bytes that UTF-8 and the 8-bit codes never have. */
function isText(head: Uint8Array): boolean {
  return head.every((byte) => byte >= 0x20 || (byte >= 0x09 && byte <= 0x0d) || byte === 0x1b);
}
