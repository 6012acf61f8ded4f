import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { ClientRefused } from '../../openapi/clients/client-plan.ts';
import { CLIENT_LANGUAGES, type ClientLanguage, type ClientOptions, generateClient } from '../../openapi/clients/generate-client.ts';
import type { App } from '../../app/declare/module.ts';
import type { CliContext } from '../load/context.ts';
import type { CoreCommand } from '../load/core-command.ts';
import { unreadable, unwritable } from '../terminal/file-fault.ts';
import { replaceFile } from '../load/write-client.ts';

interface ClientCommandOptions {
  readonly out: string;
  readonly check?: boolean;
  readonly mount?: string;
  readonly dates?: boolean;
}

/** `kit client typescript --out src/api.ts`. */
export const clientCommand: CoreCommand = (command, context) => {
  command
    .argument('<language>', 'typescript or python')
    .requiredOption('-o, --out <file>', 'the file to write')
    .option('--check', 'fail unless the file is the current client; writes nothing')
    .option('--mount <prefix>', 'only the operations of one version, e.g. /v1')
    .option('--dates', 'TypeScript: points in time are Dates instead of strings')
    .addHelpText('after', '\nThe same routes always give the same text. No database is opened.')
    .action((language: string, options: ClientCommandOptions) => generate(language, options, context));
};

async function generate(
  language: string,
  { out, check = false, mount, dates = false }: ClientCommandOptions,
  context: CliContext,
): Promise<void> {
  if (!isLanguage(language)) return context.fail(`Clients are generated in typescript or python, not ${JSON.stringify(language)}.`);
  if (dates && language !== 'typescript') return context.fail('--dates is for typescript; clients in Python have strings.');
  const app = await context.bareApp();
  if (mount !== undefined && !app.routes.some((route) => route.mount === mount))
    context.fail(
      `No route is mounted at ${JSON.stringify(mount)}; there are ${[...new Set(app.routes.map((route) => route.mount))].join(', ')}.`,
    );
  const text = textOf(app, { language, mount, dates }, context);
  const again = `npx kit client ${language} --out ${out}${mount === undefined ? '' : ` --mount ${mount}`}${dates ? ' --dates' : ''}`;
  if (check) {
    const stored = await readFile(resolve(out), 'utf8').catch((error: NodeJS.ErrnoException) =>
      context.fail(error.code === 'ENOENT' ? `There is no file ${out}. Write it with: ${again}` : unreadable(out, error)),
    );
    if (stored !== text) context.fail(`${out} is not the current client. Write it again with: ${again}`);
    return context.print(context.json ? JSON.stringify({ ok: true, file: out }) : `${out} is current.`);
  }
  await replaceFile(resolve(out), text).catch((error: Error) => context.fail(unwritable(out, error)));
  context.print(context.json ? JSON.stringify({ file: out, language }) : `${out} written.`);
}

function textOf(app: App, options: Pick<ClientOptions, 'language' | 'mount' | 'dates'>, context: CliContext): string {
  try {
    return generateClient(app.routes, { ...options, title: app.title, version: app.version });
  } catch (error) {
    if (error instanceof ClientRefused) return context.fail(error.message);
    throw error;
  }
}

function isLanguage(text: string): text is ClientLanguage {
  return (CLIENT_LANGUAGES as readonly string[]).includes(text);
}
