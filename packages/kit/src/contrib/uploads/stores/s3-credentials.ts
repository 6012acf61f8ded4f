import { readFile } from 'node:fs/promises';
import type { S3Credentials } from './sigv4.ts';

/** The credentials themselves, or files that hold them: mounted secrets, which may be replaced while the app runs. */
export type S3CredentialSource =
  | S3Credentials
  | {
      /** The file with the id of the access key. */
      readonly accessKeyIdFile: string;
      /** The file with the secret of the access key. */
      readonly secretAccessKeyFile: string;
      /** The file with the token of temporary credentials. */
      readonly sessionTokenFile?: string;
    };

/** How long files are trusted before they are read again. */
const FILES_FRESH_MS = 60_000;

/** Reads files when first asked and again after a minute. What goes wrong names the file, never what is in it. */
export function credentialReader(source: S3CredentialSource, now: () => number = () => performance.now()): () => Promise<S3Credentials> {
  if ('accessKeyId' in source) return async () => source;
  let read: Promise<S3Credentials> | undefined;
  let readAt = 0;
  return () => {
    if (read === undefined || now() - readAt > FILES_FRESH_MS) {
      readAt = now();
      read = readFiles(source);
      read.catch(() => (read = undefined));
    }
    return read;
  };
}

async function readFiles(source: Exclude<S3CredentialSource, S3Credentials>): Promise<S3Credentials> {
  const [accessKeyId, secretAccessKey, sessionToken] = await Promise.all([
    secretFile(source.accessKeyIdFile),
    secretFile(source.secretAccessKeyFile),
    source.sessionTokenFile === undefined ? undefined : secretFile(source.sessionTokenFile),
  ]);
  return { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
}

async function secretFile(path: string): Promise<string> {
  let content: string;
  try {
    content = (await readFile(path, 'utf8')).trim();
  } catch (error) {
    throw new Error(`The credentials file ${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`, { cause: error });
  }
  if (content === '') throw new Error(`The credentials file ${path} is empty.`);
  return content;
}
