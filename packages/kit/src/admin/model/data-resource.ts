import type { AdminResource } from '../../app/admin/declaration.ts';
import { shortColumns, shortList } from '../../app/admin/short-list.ts';
import type { AdminRow, AdminState } from '../../app/admin/shapes.ts';
import { toolkitModules } from '../../app/data/toolkit-modules.ts';
import type { App } from '../../app/declare/module.ts';
import { describeData, type TableData } from '../../crud/subjects/describe-data.ts';
import { retentionStates, type RetentionState } from '../../db/subjects/retention.ts';

const columns = shortColumns([
  { name: 'table', label: 'Table', kind: 'code' },
  { name: 'personal', label: 'Personal columns', kind: 'chips' },
  { name: 'encrypted', label: 'Encrypted columns', kind: 'chips' },
  { name: 'person', label: 'Rows of a person', kind: 'text' },
  { name: 'tenant', label: 'Rows of a tenant', kind: 'text', secondary: true },
  { name: 'retention', label: 'Retention', kind: 'text' },
  { name: 'removed', label: 'Rows by retention', kind: 'number' },
]);

/** What the models say about people: personal and encrypted columns, whose rows are where, and how long they are kept. Declared in code, so it is only shown. */
export function dataResource(): AdminResource {
  return {
    name: 'personal_data',
    label: 'Personal data',
    singular: 'table',
    group: 'Data',
    icon: 'table',
    auditedAs: 'personal_data',
    columns,
    filters: [],
    searches: 'table',
    creation: { refused: 'It is declared in the models: `.personal()`, `.person()`, `.encrypted()`, `retention`.' },
    editable: false,
    removable: false,
    actions: [],
    list: async (context, query) => {
      const states = await retentionStates(context.db);
      return shortList(
        describeData(context.app as App).map((data) => rowOf(data, states.get(data.table))),
        query,
      );
    },
    titles: (_context, ids) => Promise.resolve(new Map(ids.map((id) => [id, id]))),
    async read(context, id) {
      const data = describeData(context.app as App).find((each) => idOf(each) === id);
      if (data === undefined) return null;
      const state = (await retentionStates(context.db)).get(data.table);
      const row = rowOf(data, state);
      return {
        ...row,
        ...(data.retention === null ? {} : { state: stateOf(state) }),
        sections: [
          {
            kind: 'facts',
            title: 'Data',
            columns: [
              ...columns,
              { name: 'last_run', label: 'Retention ran', kind: 'time' },
              { name: 'last_rows', label: 'Rows of the last run', kind: 'number' },
              { name: 'next', label: 'Runs again', kind: 'time' },
              { name: 'error', label: 'Error', kind: 'text' },
            ],
            values: {
              ...row.values,
              last_run: state?.last_run_at?.toISOString() ?? null,
              last_rows: state === undefined ? null : Number(state.last_rows),
              next: state?.next_at.toISOString() ?? null,
              error: state?.last_error ?? null,
            },
          },
        ],
        actions: [],
        removable: false,
      };
    },
  };
}

/** Whether the application's own models say anything about people, or its modules do it for them. */
export function saysAboutPeople({ modules }: Pick<App, 'modules'>): boolean {
  return modules.some(
    ({ name, models = [] }) =>
      name === 'personal' ||
      (!toolkitModules.has(name) &&
        models.some(
          ({ columns: declared, retention }) =>
            retention !== undefined ||
            Object.values(declared).some(
              ({ settings: { personal, person, encrypted } }) => (personal ?? person ?? encrypted) !== undefined,
            ),
        )),
  );
}

function idOf({ table, using }: TableData): string {
  return using === 'default' ? table : `${using}/${table}`;
}

function rowOf(data: TableData, state: RetentionState | undefined): AdminRow {
  return {
    id: idOf(data),
    title: idOf(data),
    values: {
      table: idOf(data),
      personal: data.personal,
      encrypted: data.encrypted.map(({ column, search }) => (search ? `${column} (search)` : column)),
      person: data.person.join(', ') || null,
      tenant: data.tenant.join(', ') || null,
      retention: data.retention,
      removed: state === undefined ? null : Number(state.total_rows),
    },
  };
}

function stateOf(state: RetentionState | undefined): AdminState {
  if (state === undefined)
    return { value: 'not run', tone: 'warning', hint: 'Run: npx kit retention run, or add personalData() to the modules.' };
  return state.last_error === null ? { value: 'running', tone: 'good' } : { value: 'failed', tone: 'bad', hint: state.last_error };
}
