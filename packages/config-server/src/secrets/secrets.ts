import type { Keyring } from './keyring.ts';

/** `[server.secrets]`: what opens encrypted values, and where referenced files may be. */
export interface Secrets {
  /** Absent: files are served as they are, and ciphertexts are not recognized. */
  readonly keyring: Keyring | undefined;
  /** Folders that `ref+file://` may read, as absolute paths. Empty: references are ordinary strings. */
  readonly mounts: readonly string[];
  /** Files of the server itself, such as identities, tokens and keys: no reference reads them. */
  readonly ownFiles: readonly string[];
}

export function sameSecrets(a: Secrets | undefined, b: Secrets | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  const sameKeys = a.keyring === undefined || b.keyring === undefined ? a.keyring === b.keyring : a.keyring.equals(b.keyring);
  return sameKeys && a.mounts.join('\0') === b.mounts.join('\0') && a.ownFiles.join('\0') === b.ownFiles.join('\0');
}
