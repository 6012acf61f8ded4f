import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, extname } from 'node:path';
import type { App } from '../../app/declare/module.ts';
import { type ClientLanguage, generateClient } from '../../openapi/clients/generate-client.ts';

const EXTENSIONS: Readonly<Record<string, ClientLanguage>> = { '.ts': 'typescript', '.mts': 'typescript', '.py': 'python' };

/** The language of a client by the name of its file; undefined for other files. */
export function languageOf(file: string): ClientLanguage | undefined {
  return EXTENSIONS[extname(file)];
}

/** Writes the client unless the file has it already. Returns whether it was written. */
export async function keepClientCurrent({ routes, title, version }: App, file: string, language: ClientLanguage): Promise<boolean> {
  const text = generateClient(routes, { language, title, version, mount: undefined });
  if ((await readFile(file, 'utf8').catch(() => undefined)) === text) return false;
  await replaceFile(file, text);
  return true;
}

/** The old file, or the whole new one: never a part. Its folder is created where it is missing. */
export async function replaceFile(file: string, content: string | Buffer): Promise<void> {
  const draft = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  await mkdir(dirname(file), { recursive: true });
  try {
    await writeFile(draft, content, { flag: 'wx' });
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}
