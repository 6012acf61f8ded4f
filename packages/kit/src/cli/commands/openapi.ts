import { openApiWebhooks } from '../../app/plan-app.ts';
import { readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { openApiDocument, openApiText } from '../../openapi/index.ts';
import type { CoreCommand } from '../core-command.ts';

interface OpenApiCommandOptions {
  readonly out?: string;
  readonly check?: string;
  readonly mount?: string;
  readonly server?: string[];
  readonly spec?: string;
}

export const openapiCommand: CoreCommand = {
  name: 'openapi',
  summary: 'print the OpenAPI document of the app',
  configure(command, context) {
    command
      .option('-o, --out <file>', 'write the document to a file')
      .option('--check <file>', 'fail unless the file holds exactly the current document')
      .option('--mount <prefix>', 'only the operations of one version, e.g. /v1')
      .option('--server <url...>', 'base addresses clients use')
      .option('--spec <version>', '3.1 leaves QUERY operations out, for tools that do not know them; 3.2 has them')
      .addHelpText('after', '\nThe same routes always give the same text. No database is opened.')
      .action(async ({ out, check, mount, server, spec }: OpenApiCommandOptions) => {
        const app = await context.bareApp();
        if (mount !== undefined && !app.routes.some((route) => route.mount === mount)) {
          context.fail(
            `No route is mounted at ${JSON.stringify(mount)}; there are ${[...new Set(app.routes.map((route) => route.mount))].join(', ')}.`,
          );
        }
        const document = openApiDocument(app.routes, {
          title: app.title,
          version: app.version,
          description: app.description,
          errorFormat: app.settings.errorFormat,
          mount,
          spec: spec === undefined || isSpec(spec) ? spec : context.fail(`--spec is 3.1 or 3.2, not ${JSON.stringify(spec)}.`),
          webhooks: openApiWebhooks(app.modules),
          servers: server?.map((url) => ({ url })),
        });
        const text = openApiText(document);
        if (check !== undefined) {
          const stored = await readFile(resolve(check), 'utf8').catch(() =>
            context.fail(`There is no file ${check}. Write it with: kit openapi --out ${check}`),
          );
          if (stored !== text) context.fail(`${check} is not the current document. Write it again with: kit openapi --out ${check}`);
          context.print(`${check} is current.`);
        } else if (out !== undefined) {
          await writeFile(resolve(out), text);
          context.print(`${out} written: ${Object.keys(document.paths).length} paths.`);
        } else context.stdout.write(text);
      });
  },
};

function isSpec(text: string): text is '3.1' | '3.2' {
  return text === '3.1' || text === '3.2';
}
