import { openApiWebhooks } from '../../app/assemble/plan-app.ts';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type OpenApiDocument, openApiDocument, type OpenApiOptions, openApiText } from '../../openapi/document.ts';
import { withExamples } from '../../openapi/examples.ts';
import { allowChanges, type AllowedChange, readAllowList } from '../../openapi/diff/allow-list.ts';
import { diffDocuments } from '../../openapi/diff/diff-documents.ts';
import { readOpenApi } from '../../openapi/diff/read-document.ts';
import { renderChanges } from '../../openapi/diff/render-changes.ts';
import type { App } from '../../app/declare/module.ts';
import type { CliContext } from '../load/context.ts';
import type { CoreCommand } from '../load/core-command.ts';
import { unreadable, unwritable } from '../../work/file-fault.ts';
import { replaceFile } from '../load/write-client.ts';

interface OpenApiCommandOptions {
  readonly out?: string;
  readonly check?: string;
  readonly mount?: string;
  readonly server?: string[];
  readonly spec?: string;
  readonly examples?: boolean;
}

export const openapiCommand: CoreCommand = (command, context) => {
  command
    .option('-o, --out <file>', 'write the document to a file')
    .option('--check <file>', 'fail unless the file contains exactly the current document')
    .option('--mount <prefix>', 'only the operations of one version, e.g. /v1')
    .option('--server <url...>', 'base URLs that clients use')
    .option(
      '--spec <version>',
      '3.1, as /openapi.json serves it, without QUERY operations; or 3.2 (default: 3.2 when an operation uses QUERY)',
    )
    .option('--examples', 'add an example to each JSON body')
    .addHelpText('after', '\nThe same routes always give the same text. No database is opened.')
    .action(async ({ out, check, mount, server, spec, examples = false }: OpenApiCommandOptions) => {
      const app = await context.bareApp();
      if (mount !== undefined && !app.routes.some((route) => route.mount === mount)) {
        context.fail(
          `No route is mounted at ${JSON.stringify(mount)}; there are ${[...new Set(app.routes.map((route) => route.mount))].join(', ')}.`,
        );
      }
      const document = documentOf(app, {
        mount,
        spec: spec === undefined || isSpec(spec) ? spec : context.fail(`--spec is 3.1 or 3.2, not ${JSON.stringify(spec)}.`),
        servers: server?.map((url) => ({ url })),
      });
      const text = openApiText(examples ? withExamples(document) : document);
      const again = (file: string) =>
        [
          'npx kit openapi --out',
          file,
          ...given({ mount, spec }),
          ...(examples ? ['--examples'] : []),
          ...(server ?? []).map((url) => `--server ${url}`),
        ].join(' ');
      if (check !== undefined) {
        const stored = await readFile(resolve(check), 'utf8').catch((error: NodeJS.ErrnoException) =>
          context.fail(error.code === 'ENOENT' ? `There is no file ${check}. Write it with: ${again(check)}` : unreadable(check, error)),
        );
        if (stored !== text) context.fail(`${check} is not the current document. Write it again with: ${again(check)}`);
        context.print(context.json ? JSON.stringify({ ok: true, file: check }) : `${check} is current.`);
      } else if (out !== undefined) {
        await replaceFile(resolve(out), text).catch((error: Error) => context.fail(unwritable(out, error)));
        const paths = Object.keys(document.paths).length;
        context.print(context.json ? JSON.stringify({ file: out, paths }) : `${out} written: ${paths} paths.`);
      } else context.stdout.write(text);
    });
  command
    .command('diff')
    .argument('<base>', 'the older document, as kit openapi --out wrote it')
    .argument('[revision]', 'the newer one (default: the current document of the app)')
    .description('report what changed for callers, and fail when it breaks them')
    .option('--format <format>', 'text, json or markdown', 'text')
    .option('--fail-on <level>', 'breaking, or warning too', 'breaking')
    .option('--allow <file>', 'a JSON list of changes that are allowed for a time')
    .addHelpText(
      'after',
      '\nExit code 1 when there is such a change. kit explain says why a change matters; docs/reference/openapi-diff.md explains the list of allowed changes.',
    )
    .action((base: string, revision: string | undefined, options: DiffCommandOptions) => diff(base, revision, options, context));
};

/** Options as they were given. */
function given(options: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [`--${name} ${value}`]));
}

interface DiffCommandOptions {
  readonly format: string;
  readonly failOn: string;
  readonly allow?: string;
}

async function diff(base: string, revision: string | undefined, options: DiffCommandOptions, context: CliContext): Promise<void> {
  const { format, failOn, allow } = options;
  if (format !== 'text' && format !== 'json' && format !== 'markdown')
    context.fail(`--format is text, json or markdown, not ${JSON.stringify(format)}.`);
  if (failOn !== 'breaking' && failOn !== 'warning') context.fail(`--fail-on is breaking or warning, not ${JSON.stringify(failOn)}.`);
  const entries = allow === undefined ? [] : await allowListOf(allow, context);
  const older = await readDocument(base, context);
  const newer = revision === undefined ? await currentDocument(context, older) : await readDocument(revision, context);
  const now = new Date();
  const changes = allowChanges(diffDocuments(older, newer, { now }), entries, now);
  context.print(renderChanges(changes, context.json ? 'json' : format));
  const { remaining } = changes;
  const failing = remaining.filter(({ level }) => level === 'breaking' || level === failOn);
  if (failing.length > 0)
    context.fail(`${failing.length} of ${remaining.length} ${remaining.length === 1 ? 'change breaks' : 'changes break'} callers, or may.`);
}

async function allowListOf(file: string, context: CliContext): Promise<readonly AllowedChange[]> {
  let value: unknown;
  try {
    value = JSON.parse(await readFile(resolve(file), 'utf8'));
  } catch (error) {
    return context.fail(unreadable(file, error as Error));
  }
  const { entries, faults } = readAllowList(value);
  return faults.length === 0 ? entries : context.fail([`${file} is not a list of allowed changes.`, ...faults].join('\n'));
}

async function readDocument(file: string, context: CliContext): Promise<Readonly<Record<string, unknown>>> {
  const text = await readFile(resolve(file), 'utf8').catch((error: Error) => context.fail(unreadable(file, error)));
  const read = readOpenApi(text);
  return 'fault' in read ? context.fail(`${file} ${read.fault}`) : read.document;
}

/** In the same version of OpenAPI as the older one: 3.1 has no QUERY. */
async function currentDocument(context: CliContext, { openapi, servers }: Readonly<Record<string, unknown>>): Promise<OpenApiDocument> {
  const app = await context.bareApp();
  return documentOf(app, {
    spec: String(openapi).startsWith('3.2') ? '3.2' : '3.1',
    // Servers are an option of the command that wrote the older document; the routes do not know them.
    servers: servers as OpenApiOptions['servers'],
  });
}

function documentOf(app: App, options: Pick<OpenApiOptions, 'mount' | 'spec' | 'servers'>): OpenApiDocument {
  return openApiDocument(app.routes, {
    title: app.title,
    version: app.version,
    description: app.description,
    errorFormat: app.settings.errorFormat,
    throttleRates: app.settings.throttleRates,
    webhooks: openApiWebhooks(app.modules),
    ...options,
    servers: options.servers ?? app.settings.apiServers.map((url) => ({ url })),
  });
}

function isSpec(text: string): text is '3.1' | '3.2' {
  return text === '3.1' || text === '3.2';
}
