import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { kitchenSink } from '../../../../test/kitchen-sink/app.ts';
import { type OpenApiDocument, openApiDocument } from './document.ts';
import { withExamples } from './examples.ts';

const folder = mkdtempSync(join(tmpdir(), 'kit-examples-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Example {
  readonly at: string;
  readonly schema: object;
  readonly example: unknown;
}

function examplesOf(value: unknown, at = '#'): Example[] {
  if (typeof value !== 'object' || value === null) return [];
  const { schema, example } = value as { schema?: object; example?: unknown };
  const own = schema !== undefined && example !== undefined && at.includes('/content/') ? [{ at: `${at}/schema`, schema, example }] : [];
  return [
    ...own,
    ...Object.entries(value).flatMap(([name, inner]) =>
      name === 'example' || (at === '#/components' && name === 'schemas')
        ? []
        : examplesOf(inner, `${at}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`),
    ),
  ];
}

/** What each example breaks of its schema. */
function faultsOf(document: OpenApiDocument): string[] {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema(document, 'api');
  return examplesOf(document).flatMap(({ at, example }) => {
    const validate = ajv.compile({ $ref: `api${at.split('/').map(encodeURIComponent).join('/').replace('%23', '#')}` });
    return validate(example) ? [] : [`${at}: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(example)}`];
  });
}

test('each JSON body of a document has an example that its schema accepts', async () => {
  const app = kitchenSink({ folder });
  const document = openApiDocument(app.routes, { title: 'Everything', version: '1', spec: '3.1' });
  const full = withExamples(document);
  expect(examplesOf(full).length).toBeGreaterThan(100);
  expect(faultsOf(full)).toEqual([]);
  // Nothing else changes, and the document itself stays as it was.
  expect(JSON.stringify(document).length).toBeLessThan(JSON.stringify(full).length);
  await app.close();
});

test('an example that a schema does not accept is found', () => {
  const schema = { type: 'object', required: ['id'] };
  const content = { 'application/json': { schema, example: {} } };
  const document = { openapi: '3.1.1', info: { title: 'a', version: '1' }, paths: { '/a': { get: { content } } }, components: {} };
  expect(faultsOf(document)).toHaveLength(1);
});
