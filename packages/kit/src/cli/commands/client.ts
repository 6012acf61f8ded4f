import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ClientRefused } from '../../openapi/clients/client-plan.ts';
import { CLIENT_LANGUAGES, type ClientLanguage, type ClientOptions, generateClient } from '../../openapi/clients/generate-client.ts';
import { pythonWheel, wheelFault } from '../../openapi/clients/python-wheel.ts';
import { renamedMethods } from '../../openapi/clients/renamed-methods.ts';
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
  readonly package?: string;
}

/** `kit client typescript --out src/api.ts`. */
export const clientCommand: CoreCommand = (command, context) => {
  command
    .argument('<language>', 'typescript or python')
    .requiredOption('-o, --out <file>', 'the file to write; with --package, its folder')
    .option('--check', 'fail unless the file is the current client, and list renamed methods; writes nothing')
    .option('--mount <prefix>', 'only the operations of one version, e.g. /v1')
    .option('--dates', 'TypeScript: points in time are Dates instead of strings')
    .option('--package <name>', 'Python: a wheel of this name for pip, with the version of the app')
    .addHelpText('after', '\nThe same routes always give the same text. No database is opened.')
    .action((language: string, options: ClientCommandOptions) => generate(language, options, context));
};

async function generate(language: string, options: ClientCommandOptions, context: CliContext): Promise<void> {
  const { out, mount, dates = false, package: name } = options;
  if (!isLanguage(language)) return context.fail(`Clients are generated in typescript or python, not ${JSON.stringify(language)}.`);
  if (dates && language !== 'typescript') return context.fail('--dates is for typescript; clients in Python have strings.');
  if (name !== undefined && language !== 'python')
    return context.fail('--package is for python; a client in TypeScript is one file of your project.');
  const app = await context.bareApp();
  const fault = name === undefined ? undefined : wheelFault(name, app.version);
  if (fault !== undefined) context.fail(fault);
  if (mount !== undefined && !app.routes.some((route) => route.mount === mount))
    context.fail(
      `No route is mounted at ${JSON.stringify(mount)}; there are ${[...new Set(app.routes.map((route) => route.mount))].join(', ')}.`,
    );
  const text = textOf(app, { language, mount, dates }, context);
  const wheel = name === undefined ? undefined : pythonWheel(text, { name, version: app.version, title: app.title });
  const file = wheel === undefined ? out : join(out, wheel.file);
  const content = wheel?.bytes ?? Buffer.from(text);
  if (options.check === true) return check(file, content, { language, options, isText: wheel === undefined }, context);
  await replaceFile(resolve(file), content).catch((error: Error) => context.fail(unwritable(file, error)));
  context.print(context.json ? JSON.stringify({ file, language }) : `${file} written.`);
}

interface Checked {
  readonly language: ClientLanguage;
  readonly options: ClientCommandOptions;
  readonly isText: boolean;
}

async function check(file: string, content: Buffer, { language, options, isText }: Checked, context: CliContext): Promise<void> {
  const again = commandOf(language, options);
  const stored = await readFile(resolve(file)).catch((error: NodeJS.ErrnoException) =>
    context.fail(error.code === 'ENOENT' ? `There is no file ${file}. Write it with: ${again}` : unreadable(file, error)),
  );
  if (!stored.equals(content)) {
    const renamed = isText ? renamedMethods(stored.toString(), content.toString(), language) : [];
    context.fail([`${file} is not the current client. Write it again with: ${again}`, ...renamed].join('\n'));
  }
  context.print(context.json ? JSON.stringify({ ok: true, file }) : `${file} is current.`);
}

function commandOf(language: ClientLanguage, { out, mount, dates, package: name }: ClientCommandOptions): string {
  const flags = [
    ...(mount === undefined ? [] : [`--mount ${mount}`]),
    ...(dates === true ? ['--dates'] : []),
    ...(name === undefined ? [] : [`--package ${name}`]),
  ];
  return [`npx kit client ${language} --out ${out}`, ...flags].join(' ');
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
