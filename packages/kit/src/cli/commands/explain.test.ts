import { globSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { checkDescriptions } from '../../app/check/checks.ts';
import { createApp } from '../../app/assemble/create-app.ts';
import { defineErrors, errorCatalogs } from '../../errors/catalog.ts';
import { fieldCodes } from '../../errors/field-codes.ts';
import { diffRules } from '../../openapi/diff/rules.ts';
import { runCommand } from '../../../test/cli/run-command.ts';
import { explanations, loadToolkitErrors } from '../load/explanations.ts';
import { explainCommand } from './explain.ts';

defineErrors('explained-here', {
  out_of_stock_here: {
    status: 409,
    detail: 'Nothing is left.',
    remedy: 'Order fewer.',
    members: { left: { type: 'integer' }, sizes: { type: 'array', items: { type: 'string', enum: ['S', 'M'] } } },
  },
});
const explain = (...args: string[]): Promise<string> =>
  runCommand(explainCommand, createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, mount: {} }), args);

describe('kit explain', () => {
  test('says what an error means, what to do, and shows the response; its type finds it, too', async () => {
    const text = await explain('not_found');
    expect(text).toMatch(/^not_found: Not found \(error\)\n\n\S.*\n\nWhat to do: \S.*\n\nA response:\n\nHTTP 404\n\{/);
    expect(await explain('urn:kit:error:not_found')).toBe(text);
    expect(await explain('NOT_FOUND')).toBe(text);
  });

  test('explains the errors of the app, with a sample of each member', async () => {
    const text = await explain('out_of_stock_here');
    expect(JSON.parse(text.slice(text.indexOf('{')))).toMatchObject({ status: 409, code: 'out_of_stock_here', left: 1, sizes: ['S'] });
  });

  test('every error that a response can have, every check, fault of a field and change is explained', async () => {
    // The catalogs of all modules, found as the pages find them: none is forgotten in the list of the command.
    await loadToolkitErrors();
    const root = join(import.meta.dirname, '../..');
    const listed = new Set(errorCatalogs().map(({ module }) => module));
    for (const file of globSync('**/{errors,core-errors}.ts', { cwd: root })) await import(pathToFileURL(join(root, file)).href);
    expect(errorCatalogs().filter(({ module }) => !listed.has(module))).toEqual([]);
    const known = explanations();
    const codes = new Set(known.map(({ code }) => code));
    const all = [
      ...errorCatalogs().flatMap(({ errors }) => Object.keys(errors)),
      ...[checkDescriptions, fieldCodes, diffRules].flatMap((table) => Object.keys(table)),
    ];
    expect(all.filter((code) => !codes.has(code))).toEqual([]);
    expect(known.filter(({ meaning, title }) => meaning === '' || title === '')).toEqual([]);
  });

  test('an unknown code names the nearest one', async () => {
    expect(await explain('not_fuond')).toContain('Did you mean not_found?');
    expect(await explain('W08')).toMatch(/Did you mean W\d+\?/);
    expect(await explain('parameter-remove')).toContain('Did you mean parameter-removed?');
  });

  test('without a code it lists all codes', async () => {
    const rows = (await explain()).trimEnd().split('\n').slice(1);
    expect(rows).toHaveLength(explanations().length);
  });
});
