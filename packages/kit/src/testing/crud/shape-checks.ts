import { widestView } from '../../crud/policy/make-view.ts';
import { check, checkEqual, type CrudCheck, type CrudSubject } from './subject.ts';

/** Columns that never leave. */
function hiddenColumns({ operations }: CrudSubject): string[] {
  const view = widestView(operations.policy);
  return operations.policy.codeColumns.filter((name) => view.knows(name) === undefined);
}

export const shapeChecks: readonly CrudCheck[] = [
  {
    name: '31: fields returns exactly what it names, and the key',
    appliesTo: (subject) => subject.has('retrieve') && subject.operations.list.isSparse,
    async run(subject) {
      const { key, item } = await subject.make();
      const keyName = subject.operations.policy.key.name;
      for (const name of Object.keys(item)) {
        const { body } = await subject.expect(200, subject.owner, 'GET', `/${key}?fields=${name}`);
        const wanted = [...new Set([keyName, name])].filter((each) => each in item);
        checkEqual(Object.keys(body as object).sort(), wanted.sort(), `?fields=${name} shows other members.`);
        checkEqual(body[name], item[name], `?fields=${name} shows another value.`);
      }
    },
  },
  {
    name: '32, 34: what is hidden is on no answer, and asking for it is like a misspelling',
    appliesTo: (subject) => subject.has('list', 'retrieve'),
    async run(subject) {
      const { key, item } = await subject.make();
      const listed = await subject.expect(200, subject.owner, 'GET', '');
      const read = await subject.expect(200, subject.owner, 'GET', `/${key}`);
      const places: [string, object][] = [
        ['the answer to POST', item],
        ['the row', read.body as object],
        ...(listed.body.items as object[]).map((each): [string, object] => ['the list', each]),
      ];
      const hidden = hiddenColumns(subject);
      for (const name of hidden) for (const [place, shown] of places) check(!(name in shown), `${name} is hidden, and ${place} shows it.`);
      for (const name of hidden) {
        for (const query of [`fields=`, `ordering=`]) await sameAsUnknown(subject, `?${query}`, name, '');
        await sameAsUnknown(subject, '?', name, '=1');
      }
    },
  },
];

/** The answer about a hidden name and about a name that does not exist differ in the name alone. */
async function sameAsUnknown(subject: CrudSubject, before: string, name: string, after: string): Promise<void> {
  const unknown = 'zzzzzzzzzzzz';
  const about = async (each: string) => {
    const answer = await subject.expect(422, subject.owner, 'GET', `${before}${each}${after}`);
    return ((answer.body.errors ?? []) as { code: string; location: unknown[] }[]).map(({ code, location }) => [
      code,
      location.map((part) => (part === each ? 'NAME' : part)),
    ]);
  };
  checkEqual(await about(name), await about(unknown), `${before}${name}${after} tells that "${name}" exists.`);
}
