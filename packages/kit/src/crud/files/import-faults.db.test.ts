import { expect, test } from 'vitest';
import { z } from 'zod';
import { createTable, migration, model, t } from '../../db/index.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { testApp } from '../../testing/test-app.ts';
import { CrudController, resource } from '../index.ts';

/** A message that repeats what was sent, as careless schemas do. */
const quoting = z.string().refine((value) => value.length > 30, { error: ({ input }) => `"${String(input)}" is too short` });
const safes = model('safes', {
  id: t.uuidv7().pk(),
  name: t.text(20),
  counts: t.array(t.int()).nullable(),
  door: t.json(z.strictObject({ color: quoting, pin: quoting.meta({ 'x-sensitive': true }), keys: z.array(z.int()) })),
});
class SafeController extends CrudController(resource(safes, { unscoped: true }), {
  permission: isAuthenticated,
  import: { formats: ['csv', 'jsonl'] },
}) {}

interface Fault {
  readonly location: readonly (string | number)[];
  readonly code: string;
  readonly message: string;
}

describeDatabases('errors of an import', (database) => {
  test('have the codes and places of the same errors in a body, and repeat no sensitive value', async () => {
    await using app = await testApp({
      database: database.db,
      modules: [{ name: 'safes', models: [safes], migrations: [migration('0001_initial', [createTable('safes', safes.columns)])] }],
      mount: { '/v1': { '/safes': SafeController } },
    });
    const ann = app.as({ id: 'ann' });
    const faultsOf = (body: string): Fault[] => (JSON.parse(body) as { errors: Fault[] }).errors;
    const quoted = (value: unknown) => `"${JSON.stringify(value).replaceAll('"', '""')}"`;
    const faultsIn = async (safe: { readonly name: string; readonly counts: readonly number[]; readonly door: object }) => {
      const created = await ann.post('/v1/safes', safe);
      const expected = faultsOf(created.body).map(({ location: [, ...place], code }) => ({ place, code }));
      const files: readonly [type: string, text: string, row: number][] = [
        ['application/x-ndjson', JSON.stringify(safe), 1],
        ['text/csv', `name,counts,door\n${safe.name},${quoted(safe.counts)},${quoted(safe.door)}\n`, 2],
      ];
      const messages: string[] = [];
      for (const [type, payload, row] of files) {
        const { body } = await ann.inject({ method: 'POST', url: '/v1/safes/import', headers: { 'content-type': type }, payload });
        const faults = faultsOf(body);
        expect(faults.map(({ location: [, , ...place], code }) => ({ place, code }))).toEqual(expect.arrayContaining(expected));
        expect(faults).toHaveLength(expected.length);
        for (const { location, message } of faults) {
          expect(location.slice(0, 2)).toEqual(['body', row]);
          messages.push(`${location.slice(2).join('.')}: ${message}`);
        }
        expect(body).not.toContain('s3cret');
      }
      return messages;
    };
    const keys = [1, 'two'];
    const shape = await faultsIn({ name: 'n'.repeat(21), counts: [1, 1.5], door: { color: 'red', pin: 's3cret-pin', keys } });
    expect(shape).toContain('counts.1: Must be an integer.');
    expect(shape.filter((message) => message.startsWith('door.keys.1: '))).toHaveLength(2);
    const rules = await faultsIn({ name: 'n', counts: [1], door: { color: 'red', pin: 's3cret-pin', keys: [1] } });
    expect(new Set(rules)).toEqual(new Set(['door.color: "red" is too short.', 'door.pin: Not valid.']));
    expect(JSON.stringify(app.records)).not.toContain('s3cret');
  });
});
