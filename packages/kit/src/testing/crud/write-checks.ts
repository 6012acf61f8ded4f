import { sample } from '../sample/sample.ts';
import { check, checkEqual, type CrudCheck, type CrudSubject, type Item } from './subject.ts';

const hasVersion = ({ operations }: CrudSubject) => operations.policy.options.version !== undefined && operations.options.etag !== false;
const canChange = (subject: CrudSubject) => subject.has('retrieve', 'partialUpdate');

async function changesOf(subject: CrudSubject): Promise<Item> {
  const changes = await subject.changes();
  check(changes !== undefined, 'No column of the input can be changed.');
  return changes;
}

export const writeChecks: readonly CrudCheck[] = [
  {
    name: '42: a new row is 201 with its address and tag, and the answer is what GET shows',
    appliesTo: (subject) => subject.has('create', 'retrieve'),
    async run(subject) {
      const made = await subject.expect(201, subject.owner, 'POST', '', await subject.input());
      const address = new URL(String(made.headers['location']), `http://test${subject.located()}`);
      checkEqual(address.pathname, subject.located(`/${String(made.body[subject.key])}`), 'Location is another address.');
      const read = await subject.expect(200, subject.owner, 'GET', `/${String(made.body[subject.key])}`);
      checkEqual(made.body, read.body, 'The answer to POST is not what GET shows.');
      if (subject.operations.options.etag !== false)
        checkEqual(made.headers['etag'], read.headers['etag'], 'POST and GET have different tags.');
    },
  },
  {
    name: 'a body with an unknown member, or one that reaches a prototype, is refused',
    appliesTo: (subject) => subject.has('create'),
    async run(subject) {
      const input = JSON.stringify(await subject.input());
      for (const [name, status] of [
        ['no_such_name', 422],
        ['constructor', 400],
        ['__proto__', 400],
      ] as const) {
        const payload = `${input.slice(0, -1)}${input === '{}' ? '' : ','}"${name}":{"x":1}}`;
        await subject.expect(status, subject.owner, 'POST', '', payload, { 'content-type': 'application/json' });
      }
    },
  },
  {
    name: 'a change is what the next read shows; an empty one changes nothing',
    appliesTo: canChange,
    async run(subject) {
      const { key } = await subject.make();
      const before = await subject.expect(200, subject.owner, 'GET', `/${key}`);
      await subject.expect(200, subject.owner, 'PATCH', `/${key}`, {}, subject.anyVersion);
      const unchanged = await subject.expect(200, subject.owner, 'GET', `/${key}`);
      check(before.text === unchanged.text, `An empty PATCH changed the row: ${before.text} became ${unchanged.text}`);
      const changes = await changesOf(subject);
      const changed = await subject.expect(200, subject.owner, 'PATCH', `/${key}`, changes, subject.anyVersion);
      const after = await subject.expect(200, subject.owner, 'GET', `/${key}`);
      checkEqual(changed.body, after.body, 'The answer to PATCH is not what GET shows.');
      for (const name of Object.keys(changes).filter((each) => each in (after.body as object)))
        checkEqual(after.body[name], changes[name], `PATCH did not change ${name}.`);
      const { owner, tenant } = subject.operations.policy;
      for (const name of [subject.key, owner?.column, tenant?.column])
        if (name !== undefined && name in before.body) checkEqual(after.body[name], before.body[name], `PATCH changed ${name}.`);
    },
  },
  {
    name: '49: null is refused where the column cannot hold it',
    appliesTo: canChange,
    async run(subject) {
      const { key } = await subject.make();
      const { policy, input } = subject.operations;
      const rigid = input.filter((name) => {
        const { settings } = policy.statements.column(name);
        return !settings.nullable && settings.kind !== 'json' && policy.options.fields?.[name] === undefined;
      });
      for (const name of rigid) {
        const answer = await subject.call(subject.owner, 'PATCH', `/${key}`, { [name]: null }, subject.anyVersion);
        check(answer.status === 422, `PATCH { ${name}: null } answered ${answer.status}: ${answer.text}`);
      }
    },
  },
  {
    name: '51: the current tag is 304 without a body; after a change it is 200 with another tag',
    appliesTo: (subject) => canChange(subject) && subject.operations.options.etag !== false,
    async run(subject) {
      const { key } = await subject.make();
      const { headers } = await subject.expect(200, subject.owner, 'GET', `/${key}`);
      const condition = { 'if-none-match': String(headers['etag']) };
      const same = await subject.expect(304, subject.owner, 'GET', `/${key}`, undefined, condition);
      check(same.text === '', 'A 304 has a body.');
      const changed = await subject.expect(200, subject.owner, 'PATCH', `/${key}`, await changesOf(subject), subject.anyVersion);
      const after = await subject.expect(200, subject.owner, 'GET', `/${key}`, undefined, condition);
      check(after.headers['etag'] !== headers['etag'], 'The tag stayed the same after a change.');
      checkEqual(changed.headers['etag'], after.headers['etag'], 'PATCH and GET have different tags.');
    },
  },
  {
    name: '52: a change with a stale or weak tag is 412 with the current one; without a tag 428 where it is required',
    appliesTo: (subject) => canChange(subject) && hasVersion(subject),
    async run(subject) {
      const { key } = await subject.make();
      const { headers } = await subject.expect(200, subject.owner, 'GET', `/${key}`);
      const stale = String(headers['etag']);
      const changed = await subject.expect(200, subject.owner, 'PATCH', `/${key}`, await changesOf(subject), { 'if-match': stale });
      for (const tag of [stale, `W/${String(changed.headers['etag'])}`]) {
        const refused = await subject.expect(412, subject.owner, 'PATCH', `/${key}`, await changesOf(subject), { 'if-match': tag });
        check(
          typeof refused.body.etag === 'string' && refused.body.etag === refused.headers['etag'],
          'A 412 does not say the current tag.',
        );
      }
      if (subject.operations.options.etag === 'required')
        await subject.expect(428, subject.owner, 'PATCH', `/${key}`, await changesOf(subject));
      const after = await subject.expect(200, subject.owner, 'GET', `/${key}`);
      checkEqual(after.body, changed.body, 'A refused change changed the row.');
    },
  },
  {
    name: '53: of ten changes with one tag at once exactly one succeeds',
    appliesTo: (subject) => canChange(subject) && hasVersion(subject),
    async run(subject) {
      const { key } = await subject.make();
      const { headers } = await subject.expect(200, subject.owner, 'GET', `/${key}`);
      const changes = await changesOf(subject);
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => subject.call(subject.owner, 'PATCH', `/${key}`, changes, { 'if-match': String(headers['etag']) })),
      );
      checkEqual(
        answers.map(({ status }) => status).sort((a, b) => a - b),
        [200, ...Array.from({ length: 9 }, () => 412)],
        'Changes were lost.',
      );
    },
  },
  {
    name: 'a deleted row is gone: 204, then 404, and in no list',
    appliesTo: (subject) => subject.has('retrieve', 'destroy'),
    async run(subject) {
      const { key } = await subject.make();
      const answer = await subject.call(subject.owner, 'DELETE', `/${key}`, undefined, subject.anyVersion);
      if (answer.status === 403) return;
      check(answer.status === 204, `DELETE answered ${answer.status}: ${answer.text}`);
      await subject.expect(404, subject.owner, 'GET', `/${key}`);
      await subject.expect(404, subject.owner, 'DELETE', `/${key}`, undefined, subject.anyVersion);
      if (!subject.has('list')) return;
      const { text } = await subject.expect(200, subject.owner, 'GET', '');
      check(!text.includes(key), 'A deleted row is in the list.');
    },
  },
  {
    name: '66, 67: each transition that is listed is accepted, once of ten at once',
    appliesTo: (subject) => subject.has('transitions'),
    async run(subject) {
      const { key } = await subject.make();
      const { body } = await subject.expect(200, subject.owner, 'GET', `/${key}/transitions`);
      const listed = new Set((body.items as { name: string }[]).map(({ name }) => name));
      for (const name of Object.keys(subject.operations.transitionRules)) {
        const row = await subject.make();
        const route = [...subject.routes].find(({ field }) => field === name);
        const payload = route?.body === undefined ? undefined : sample(route.body.json as never, { optional: 'none' });
        const ask = () => subject.call(subject.owner, 'POST', `/${row.key}/${name}`, payload, subject.anyVersion);
        const answers = await Promise.all(Array.from({ length: 10 }, ask));
        const accepted = answers.filter(({ status }) => status === 200).length;
        const expected = listed.has(name) ? 1 : 0;
        check(
          accepted === expected,
          `"${name}" is ${expected === 1 ? '' : 'not '}listed for a new row, and ${accepted} of ten requests were accepted: ${answers[0]?.text ?? ''}`,
        );
      }
    },
  },
];
