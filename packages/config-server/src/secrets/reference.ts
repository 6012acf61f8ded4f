import { realpath } from 'node:fs/promises';
import { normalize, sep } from 'node:path';

/** A value that is read from a mounted file: `ref+file:///run/secrets/database-password`. The whole value must be the reference. */
const REFERENCE = /^ref\+([a-z0-9.+-]+):\/\//;

/** What Kubernetes allows in one Secret. */
export const REFERENCED_BYTES_MAX = 1024 * 1024;

export function looksLikeReference(text: string): boolean {
  return REFERENCE.test(text);
}

/** The path that a reference names, or a sentence about why it names none. */
export function parseReference(text: string): { readonly path: string } | { readonly problem: string } {
  if (REFERENCE.exec(text)?.[1] !== 'file') return { problem: 'is a reference of an unknown kind; only ref+file:// is supported' };
  const path = decodePath(text.slice('ref+file://'.length));
  if (path === undefined || !path.startsWith('/') || path.includes('\0')) {
    return { problem: 'is a malformed reference; write ref+file:// and an absolute path, with special characters percent-encoded' };
  }
  if (normalize(path) !== path || path.endsWith('/')) return { problem: 'is a reference whose path has empty or dot segments' };
  return { path };
}

function decodePath(text: string): string | undefined {
  // A fragment or query would select a part of the file in other tools, and must not be taken as a name.
  if (/[?#]/.test(text)) return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Whether `path` is in the folder or below it. */
export function isBelow(path: string, folder: string): boolean {
  return path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/**
 * Follows the links of a path, as a Kubernetes mount has them, and returns where it leads when that is below one of the folders.
 * A link out of a mount would let those who write configuration read any file of the server.
 */
export async function resolveBelow(path: string, folders: readonly string[]): Promise<string | undefined> {
  const target = await realpath(path);
  for (const folder of folders) {
    if (isBelow(path, folder) && isBelow(target, await realpath(folder))) return target;
  }
  return undefined;
}

/** A referenced file as a value: text, without one final line feed. */
export function referencedValue(bytes: Buffer): string | undefined {
  if (bytes.length > REFERENCED_BYTES_MAX) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes).replace(/\r?\n$/, '');
  } catch {
    return undefined;
  }
}
