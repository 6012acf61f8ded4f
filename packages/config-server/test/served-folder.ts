import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { temporaryFolder } from './temporary-folder.ts';

export const TOKENS = {
  billing: 'token-of-billing-0123456789-0123456789-a',
  orders: 'token-of-orders-0123456789-0123456789-bb',
  nothing: 'token-of-nobody-0123456789-0123456789-cc',
};

/** Writes files below a temporary folder. */
export async function folderWith(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await temporaryFolder();
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), content);
  }
  return folder;
}

export interface SectionToml {
  readonly application: string;
  readonly profile: string;
  readonly files: readonly string[];
  readonly extra?: string;
}

/** A server.toml with the given sections and the three callers of TOKENS: one per application, and one that may read nothing. */
export function serverToml(sections: readonly SectionToml[], server = ''): string {
  const applications = new Set(sections.map((section) => section.application));
  const grants = (name: string): string => JSON.stringify(applications.has(name) ? [name] : []);
  return [
    `[server]\nbind = "127.0.0.1:0"\n${server}`,
    ...sections.map(
      ({ application, profile, files, extra = '' }) =>
        `[[server.sections]]\napplication = "${application}"\nprofile = "${profile}"\nfiles = ${JSON.stringify(files)}\n${extra}`,
    ),
    ...Object.entries(TOKENS).map(
      ([name, token]) => `[[server.clients]]\nname = "${name}-caller"\ntoken = "${token}"\napplications = ${grants(name)}`,
    ),
  ].join('\n');
}
