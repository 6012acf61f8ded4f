import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** One file of the built browser application. */
export interface SiteFile {
  readonly mediaType: string;
  readonly content: Buffer;
  readonly etag: string;
  /** Its name changes with its content, so it can be cached forever. */
  readonly isNamedByContent: boolean;
  /** As the build compressed it, beside it under the same name and `.br` or `.gz`. */
  readonly encoded: Readonly<Record<'br' | 'gzip', Buffer | undefined>>;
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

/** The files by their path in the folder; null when there is no built application. Only kinds a browser needs are served. */
export async function readSite(folder: URL): Promise<ReadonlyMap<string, SiteFile> | null> {
  const root = fileURLToPath(folder);
  const entries = await readdir(root, { recursive: true, withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const bytes = new Map<string, Buffer>();
  for (const entry of entries) {
    if (!entry.isFile() || entry.name.startsWith('.')) continue;
    const path = join(entry.parentPath, entry.name);
    bytes.set(relative(root, path).split(sep).join('/'), await readFile(path));
  }
  const files = new Map<string, SiteFile>();
  for (const [name, content] of bytes) {
    const mediaType = MEDIA_TYPES[name.split('.').at(-1) ?? ''];
    if (mediaType === undefined) continue;
    const etag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 27)}"`;
    files.set(name, {
      mediaType,
      content,
      etag,
      isNamedByContent: name.startsWith('assets/'),
      encoded: { br: bytes.get(`${name}.br`), gzip: bytes.get(`${name}.gz`) },
    });
  }
  return files.has('index.html') ? files : null;
}
