import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

/** One file of the built browser application. */
export interface SiteFile {
  readonly mediaType: string;
  readonly content: Buffer;
  readonly etag: string;
  /** Compressed when first asked for, once. */
  encoded(encoding: 'br' | 'gzip'): Promise<Buffer>;
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  json: 'application/json; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  ico: 'image/x-icon',
  woff2: 'font/woff2',
};

const compress = {
  br: (content: Buffer) => promisify(brotliCompress)(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (content: Buffer) => promisify(gzip)(content, { level: 9 }),
};

/** The files by their path in the folder; null when there is no built application. Only kinds a browser needs are served. */
export async function readSite(folder: URL): Promise<ReadonlyMap<string, SiteFile> | null> {
  const root = fileURLToPath(folder);
  const entries = await readdir(root, { recursive: true, withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const files = new Map<string, SiteFile>();
  for (const entry of entries) {
    const mediaType = MEDIA_TYPES[entry.name.split('.').at(-1) ?? ''];
    if (!entry.isFile() || entry.name.startsWith('.') || mediaType === undefined) continue;
    const path = join(entry.parentPath, entry.name);
    files.set(relative(root, path).split(sep).join('/'), siteFile(await readFile(path), mediaType));
  }
  return files.has('index.html') ? files : null;
}

function siteFile(content: Buffer, mediaType: string): SiteFile {
  const made: Partial<Record<'br' | 'gzip', Promise<Buffer>>> = {};
  return {
    mediaType,
    content,
    etag: `"${createHash('sha256').update(content).digest('base64url').slice(0, 27)}"`,
    encoded: (encoding) => (made[encoding] ??= compress[encoding](content)),
  };
}
