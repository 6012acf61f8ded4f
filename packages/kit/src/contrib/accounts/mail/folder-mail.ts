import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readOptions } from '../../../options/read-options.ts';
import { filledText, required } from '../../../options/value-rule.ts';
import type { MailPort, StoredMail } from '../../../app/declare/mail-port.ts';

export interface FolderMailOptions {
  /** Where each message is written as a file. */
  readonly folder: string;
}

const NAME = /^\d{17}-[0-9a-f]{8}\.json$/;

/** For development: mails become files in a folder, which only this user can read, and the admin site shows them. Nothing is sent. */
export function folderMail(options: FolderMailOptions): MailPort {
  const { folder } = readOptions('folderMail()', options, { folder: required(filledText) });
  return {
    async send(message) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const name = `${new Date().toISOString().replaceAll(/\D/g, '')}-${randomBytes(4).toString('hex')}.json`;
      const { to, subject, text } = message;
      // A reader of the folder never sees half a mail.
      const unfinished = join(folder, `.${name}`);
      await writeFile(unfinished, `${JSON.stringify({ to, subject, text }, null, 2)}\n`, { mode: 0o600 });
      await rename(unfinished, join(folder, name));
    },
    sent: {
      async list(limit) {
        const names = (await readdir(folder).catch(() => [])).filter((name) => NAME.test(name)).sort();
        const newest = names.reverse().slice(0, limit);
        return (await Promise.all(newest.map((name) => readMail(folder, name)))).filter((mail) => mail !== null);
      },
      read: (id) => (NAME.test(`${id}.json`) ? readMail(folder, `${id}.json`) : Promise.resolve(null)),
    },
  };
}

async function readMail(folder: string, name: string): Promise<StoredMail | null> {
  try {
    const { to, subject, text } = JSON.parse(await readFile(join(folder, name), 'utf8')) as StoredMail;
    const digits = name.slice(0, 17);
    const at = digits.replace(/(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d{3})/, '$1-$2-$3T$4:$5:$6.$7Z');
    return { id: name.slice(0, -'.json'.length), sentAt: new Date(at), to, subject, text };
  } catch {
    // Deleted, or changed by hand.
    return null;
  }
}
