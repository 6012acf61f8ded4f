import { randomUUID } from 'node:crypto';
import { anonymised, check, checkEqual, type CrudCheck, type CrudSubject } from './subject.ts';

/** Operations that take keys: where the controller says so, and where its create does without being told. */
function takesKeys({ operations, routes }: CrudSubject): boolean {
  const { idempotency } = operations.options;
  if (idempotency !== undefined) return idempotency !== false;
  return [...routes].some(({ field, idempotency: own }) => field === 'create' && own !== undefined);
}

const isAtomic = ({ operations }: CrudSubject) => (operations.options.bulk?.mode ?? 'atomic') === 'atomic';

/** What is tested of operations besides reading and writing one row. */
export const operationChecks: readonly CrudCheck[] = [
  {
    name: '57: a request that is repeated with its key is done once; the key with another body is refused',
    appliesTo: (subject) => subject.has('create') && takesKeys(subject),
    async run(subject) {
      const key = { 'idempotency-key': `crud-tests-${randomUUID()}` };
      const input = await subject.input();
      const first = await subject.expect(201, subject.owner, 'POST', '', input, key);
      const again = await subject.call(subject.owner, 'POST', '', input, key);
      check(
        again.text === first.text && again.headers['idempotent-replayed'] === 'true',
        `The repeated request was done again: ${again.status} ${again.text.slice(0, 400)}`,
      );
      const other = await subject.input();
      if (JSON.stringify(other) !== JSON.stringify(input)) await subject.expect(422, subject.owner, 'POST', '', other, key);
    },
  },
  {
    name: '62, 63: a deleted row is only among the deleted ones, and comes back as it was',
    appliesTo: (subject) => subject.has('retrieve', 'list', 'destroy', 'restore'),
    async run(subject) {
      const { key } = await subject.make();
      const { body: before } = await subject.expect(200, subject.owner, 'GET', `/${key}`);
      const gone = await subject.call(subject.owner, 'DELETE', `/${key}`, undefined, subject.anyVersion);
      if (gone.status === 403) return;
      check(gone.status === 204, `DELETE answered ${gone.status}: ${gone.text}`);
      await subject.expect(404, subject.owner, 'GET', `/${key}`);
      const restored = await subject.call(subject.owner, 'POST', `/${key}/restore`);
      if (restored.status === 403) return;
      check(restored.status === 200, `Restoring answered ${restored.status}: ${restored.text}`);
      const { body: after } = await subject.expect(200, subject.owner, 'GET', `/${key}`);
      for (const name of subject.operations.input) checkEqual(after[name], before[name], `Restoring changed ${name}.`);
      await subject.expect(404, subject.owner, 'POST', `/${key}/restore`);
    },
  },
  {
    name: '69: a bulk request with a wrong item writes none, and says which; more items than allowed are refused',
    appliesTo: (subject) => subject.has('bulkCreate', 'list') && isAtomic(subject),
    async run(subject) {
      const read = async () => anonymised(await subject.expect(200, subject.owner, 'GET', ''));
      const before = await read();
      const items = [await subject.input(), { ...(await subject.input()), no_such_name: 1 }];
      const { body } = await subject.expect(422, subject.owner, 'POST', '/bulk', { items });
      checkEqual(body.errors?.[0]?.location, ['body', 'items', 1, 'no_such_name'], 'The fault is not at its item.');
      checkEqual(await read(), before, 'A part of the items was written.');
      const { max = 100 } = subject.operations.options.bulk ?? {};
      const many = Array.from({ length: max + 1 }, () => items[0]);
      await subject.expect(422, subject.owner, 'POST', '/bulk', { items: many });
    },
  },
];
