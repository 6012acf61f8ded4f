import { fieldCodes } from '../packages/kit/src/errors/field-codes.ts';
import { globSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { checkDescriptions } from '../packages/kit/src/app/check/checks.ts';
import { type DeprecationNotice, deprecationNotices } from '../packages/kit/src/options/deprecation-codes.ts';
import { diffRules } from '../packages/kit/src/openapi/diff/rules.ts';
import { benchmarksPage } from './benchmarks-page.ts';
import { errorCatalogs, type ErrorDefinition } from '../packages/kit/src/errors/catalog.ts';

export const root = resolve(import.meta.dirname, '..');

/** A page that is made from the sources, and the text it must have. */
export interface ReferencePage {
  readonly path: string;
  readonly text: string;
}

export async function referencePages(): Promise<readonly ReferencePage[]> {
  return [
    { path: 'docs/reference/errors.md', text: await errorsPage() },
    { path: 'docs/reference/checks.md', text: checksPage() },
    { path: 'docs/reference/openapi-diff.md', text: openApiDiffPage() },
    { path: 'docs/reference/deprecations.md', text: deprecationsPage() },
    { path: 'docs/benchmarks.md', text: benchmarksPage() },
  ];
}

/** Catalogs register themselves when their file is loaded; by convention that file is called errors.ts. */
async function errorsPage(): Promise<string> {
  const files = globSync('packages/kit/src/**/{errors,core-errors}.ts', { cwd: root }).sort();
  for (const file of files) await import(pathToFileURL(join(root, file)).href);
  const parts = errorCatalogs().map(({ module, errors }) => `## ${module}\n\n${errorTable(Object.values(errors))}`);
  return `# Errors

<!-- Made by \`npm run docs:reference\` from the catalogs in packages/kit/src; a test fails when it is stale. -->

\`kit explain not_found\` says what an error means and what to do, and shows the response; it takes the \`type\` of a response, too, and knows the errors of your app.

All error responses have one format. \`ERROR_FORMAT=problem+json\` (the default, RFC 9457):

\`\`\`json
{
  "type": "urn:kit:error:validation_error",
  "title": "Validation error",
  "status": 422,
  "detail": "The request is well formed, but some of its values are invalid.",
  "code": "validation_error",
  "request_id": "0f8e6c1d2b3a495867-1a",
  "errors": [{ "location": ["body", "lines", 0, "quantity"], "code": "too_small", "message": "Too small: expected number to be >=1" }]
}
\`\`\`

\`ERROR_FORMAT=detail\` is \`{ "detail", "code", "errors"? }\`. In \`problem+json\` some codes add their own members. \`X-Request-Id\` is on every error response.

- \`code\` is never renamed. \`detail\` is a sentence for people and may change.
- \`errors\` lists every error of the input together, up to a hundred. \`location\` starts with \`body\`, \`query\`, \`params\`, \`headers\` or \`cookies\`.
- An undeclared error is a 500 \`internal_error\`. The cause is in the log under its request id.

## Your own errors

A module declares a catalog; the key is the code. An error map on the operation, its controller, its version mount or the app makes a response of an error class, the nearest first. \`raises\` puts them in the OpenAPI document.

\`\`\`ts
import { allowAny, Controller, defineErrors, errors, route } from 'kit';

export const stockErrors = defineErrors('stock', {
  out_of_stock: { status: 409, detail: 'Nothing is left.', remedy: 'Order fewer.' },
});

class WarehouseOffline extends Error {
  readonly retrySeconds = 30;
}

export class StockController extends Controller {
  static override readonly errors = errors().on(WarehouseOffline, {
    status: 503,
    code: 'warehouse_offline',
    detail: 'The warehouse does not answer.',
    headers: ({ retrySeconds }) => ({ 'retry-after': String(retrySeconds) }),
  });

  reserve = route.get('/reserve', { permission: allowAny, raises: [stockErrors.out_of_stock, WarehouseOffline] }, () => {
    throw stockErrors.out_of_stock({ extensions: { left: 0 } });
  });
}
\`\`\`

\`detail\`, \`errors\`, \`headers\` and, as members of a problem, \`extensions\` are sent; \`message\` and \`cause\` are only logged.

## Codes of fields

Every error of a 422 has one of these codes, one that the operation documents, or one of your schema (\`not_a_vat_number\`). A 400 \`malformed_body\` has \`invalid_json\`, \`duplicate_key\`, \`forbidden_key\`,
\`number_out_of_range\` or \`invalid_text\`.

${fieldCodeTable()}

${parts.join('\n\n')}
`;
}

function fieldCodeTable(): string {
  return ['| code | means |', '|---|---|', ...Object.entries(fieldCodes).map(([code, meaning]) => `| \`${code}\` | ${meaning} |`)].join(
    '\n',
  );
}

/** A line for each status: the sentence of a code is in its response, and in `kit explain`. */
function errorTable(definitions: readonly ErrorDefinition[]): string {
  const codes = Map.groupBy(
    definitions.toSorted((a, b) => a.status - b.status || (a.code < b.code ? -1 : 1)),
    ({ status }) => status,
  );
  const rows = [...codes].map(([status, each]) => `| ${status} | ${each.map(({ code }) => `\`${code}\``).join(', ')} |`);
  return ['| status | codes |', '|---|---|', ...rows].join('\n');
}

function openApiDiffPage(): string {
  const isOfSchema = (id: string): boolean => /^(input|output)-.*-(narrowed|widened)$/.test(id);
  const levels = Map.groupBy(
    Object.entries(diffRules).filter(([id]) => !isOfSchema(id)),
    ([, { level }]) => level,
  );
  const rows = [...levels].map(([level, rules]) => `| ${level} | ${rules.map(([id]) => `\`${id}\``).join(', ')} |`);
  const aspects = [
    ...new Set(
      Object.keys(diffRules)
        .filter(isOfSchema)
        .map((id) => id.split('-')[1]),
    ),
  ];
  return `# Breaking changes

<!-- Made by \`npm run docs:reference\` from packages/kit/src/openapi/diff/rules.ts; a test fails when it is stale. -->

\`kit openapi diff\` compares two OpenAPI documents from the view of a caller that was written against the older one: the server may accept more and
return less. The program comes with the package: [Your first API](../guide/first-api.md) shows how to install it.

\`\`\`sh not-run
npx kit openapi --out openapi.json                     # keep the document of a release
npx kit openapi diff openapi.json                      # later: what changed since, and does it break callers?
npx kit openapi diff old.json new.json --format markdown --fail-on warning
npx kit openapi diff openapi.json --allow allowed.json # some changes were agreed on
\`\`\`

The exit code is 1 when a change is breaking (with \`--fail-on warning\` also when it is a warning). The last line is the part of a semantic version that
must grow. Documents of OpenAPI 3.0, 3.1 and 3.2 in JSON can be compared; nothing is fetched, so a document must not refer to other files.

- References, \`allOf\`, unions, discriminators and recursive schemas are followed. The same values in other words (\`nullable\`, \`const\`, another order of
  alternatives) are not a change. A change that cannot be decided, such as another \`pattern\`, counts as breaking.
- Input is what the server accepts: parameters and bodies. Output is what it returns or sends: responses, their headers, events of streams, webhooks.
- Scopes, permissions, rate limits and error codes are compared too (\`x-scope\`, \`x-permission\`, \`x-throttles\`, \`x-error-codes\`).
- A change of a named schema is one line of text with the number of operations that have it; \`--format json\` lists each operation.

## Deprecate before you remove

An operation that was \`deprecated\` with a sunset date in the older document may be removed after that date: the change is a warning. Before that date, or
without one, the removal is breaking. So is an earlier sunset date. Parameters with \`deprecated\` and \`x-sunset\` are treated alike.

## Allow a change for a time

\`\`\`json
[{ "id": "parameter-removed", "operation": "GET /v1/orders", "place": "query status__in", "until": "2026-12-31", "reason": "No caller sent it for a year." }]
\`\`\`

An entry allows the changes of one rule in one operation (\`*\`: in all of them), in one \`place\` or in all, up to the end of the day \`until\` (UTC). An expired
entry allows nothing and is reported; so is one that matches no change. \`id\`, \`operation\`, \`until\` and \`reason\` are required. The version still
counts an allowed change.

## Rules

\`kit explain parameter-removed\` says what a rule compares and why it matters to callers.

| level | rules |
|---|---|
${rows.join('\n')}

Values of a schema have four rules for each of ${aspects.map((aspect) => `\`${aspect}\``).join(', ')}, such as \`input-type-narrowed\`.
\`input-…-narrowed\` and \`output-…-widened\` are breaking (\`output-additional-widened\` is additive); \`input-…-widened\` and \`output-…-narrowed\` are additive.
`;
}

function deprecationsPage(): string {
  const parts = Object.entries<DeprecationNotice>(deprecationNotices).map(
    ([code, { title, since, removal, remedy }]) =>
      `## ${code}: ${title}\n\nDeprecated since ${since}; goes away in ${removal}.\n\nWhat to do: ${remedy}`,
  );
  return `# Deprecations

<!-- Made by \`npm run docs:reference\` from packages/kit/src/options/deprecation-codes.ts; a test fails when it is stale. -->

Features are deprecated before they are removed. The first use in a process gives a \`DeprecationWarning\` with a code. \`--no-deprecation\` silences it, \`--trace-deprecation\` shows the place, \`--throw-deprecation\` makes it an error:

\`\`\`ts
process.on('warning', (warning: Error & { readonly code?: string }) => {
  if (warning.code?.startsWith('KIT_DEP')) console.error(warning.code, warning.message);
});
\`\`\`

Deprecated **operations of your API** are another matter: \`deprecated\` on a route and the [deprecation middleware](middleware.md) tell your clients.

${parts.length === 0 ? 'Nothing is deprecated.' : parts.join('\n\n')}
`;
}

function checksPage(): string {
  const rows = (first: string) =>
    Object.entries(checkDescriptions)
      .filter(([id]) => id.startsWith(first))
      .map(([id, { title }]) => `| ${id} | ${title} |`)
      .join('\n');
  return `# Checks

<!-- Made by \`npm run docs:reference\` from packages/kit/src/app/check/checks.ts; a test fails when it is stale. -->

The app is checked when it is created; modules add checks that run once the databases are open. All problems are reported together. \`kit explain E003\` says what a check looks for, why, and what to do; \`kit doctor\` and \`kit check\`
run them.

## Checks that stop the start

| id | what is wrong |
|---|---|
${rows('E')}

## Checks that warn

Silence a warning that does not apply to your app, with a reason: \`createApp({ silencedChecks: { W008: '…' } })\`.

| id | what is wrong |
|---|---|
${rows('W')}
`;
}
