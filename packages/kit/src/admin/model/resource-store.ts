import type { AdminAction } from '../../app/admin/declaration.ts';
import type { AdminField } from '../../app/admin/shapes.ts';
import { adminDone, adminEach } from '../../app/admin/each.ts';
import { actionRulesOf, type NamedRule } from '../../crud/declare/action-rule.ts';
import { type AnyResource, STAFF } from '../../crud/declare/resource.ts';
import type { AdminAccess } from '../../crud/serve/admin-access.ts';
import type { TransitionRule } from '../../crud/declare/transition-rule.ts';
import type { Columns } from '../../db/declare/rows.ts';
import { inputSchema, patchSchema } from '../../db/declare/model-schema.ts';
import { isKitError } from '../../errors/kit-error.ts';
import { jsonSchemaOf } from '../../http/declare/schema.ts';
import { writeWithFiles } from './attach-files.ts';
import { labelOf } from '../../app/admin/model-columns.ts';
import type { Plan, Row } from './model-plan.ts';
import { checked } from './model-rows.ts';
import { databaseOf, type RowStore } from './model-store.ts';
import { accessOf } from '../staff/staff-access.ts';

/** A table with a resource: its rules say what is shown, and every change goes through its pipeline. */
export function resourceStore(plan: Plan, resource: AnyResource): RowStore {
  const versionColumn = resource.options.version as string | undefined;
  const { columns } = plan.model;
  const rows = plan.softDeletes ? 'any' : 'live';
  // The owner and the tenant are read-only for clients of the API; here the form gives them.
  const creation = inputSchema(Object.fromEntries(plan.creatable.map(({ name }) => [name, settable(columns, name)])) as Columns);
  const edit = patchSchema(Object.fromEntries(plan.writable.map(({ name }) => [name, settable(columns, name)])) as Columns);
  return {
    async view(context) {
      const access = await accessOf(resource, context);
      return {
        columns: await access.columns(),
        condition: (dialect, parameters) => access.condition(dialect, 't', parameters, rows),
        search: (backend, text, dialect, parameters) => access.search(backend, text, dialect, 't', parameters),
      };
    },
    async find(context, id) {
      try {
        return await (await accessOf(resource, context)).find(id, rows);
      } catch (error) {
        if (isKitError(error) && error.status === 404) return undefined;
        throw error;
      }
    },
    async create(context, fields) {
      const values = checked(creation['~standard'].validate({ ...fields })) as Row;
      const access = await accessOf(resource, context);
      const sent = sentBy(plan, fields);
      return writeWithFiles(databaseOf(plan, context), plan, context, fields, (transaction) =>
        access.create(values, { sent, ...transaction }),
      );
    },
    async update(context, id, fields, version) {
      const values = checked(edit['~standard'].validate({ ...fields })) as Row;
      const expected = version === null || versionColumn === undefined ? {} : { version };
      const access = await accessOf(resource, context);
      const write = { sent: sentBy(plan, fields), ...expected };
      return writeWithFiles(databaseOf(plan, context), plan, context, fields, (transaction) =>
        access.update(id, values, { ...write, ...transaction }),
      );
    },
    async remove(context, id) {
      const access = await accessOf(resource, context);
      const before = await access.find(id);
      await access.destroy(id);
      return before;
    },
    async restore(context, id) {
      await (await accessOf(resource, context)).restore(id);
    },
    async importRows(context, { body, format, dryRun, upsert }) {
      const access = await accessOf(resource, context);
      const by = upsert ? plan.uniqueColumn : undefined;
      return access.importRows(body, format, {
        input: plan.creatable.map(({ name }) => name),
        schema: creation,
        by,
        isDryRun: dryRun,
      });
    },
  };
}

function settable(columns: Columns, name: string): Columns[string] {
  const { settings } = columns[name] as Columns[string];
  return { settings: { ...settings, readOnly: false } } as Columns[string];
}

/** What the right to write is asked for: not the owner and the tenant, which the site gives. */
function sentBy({ writable }: Plan, fields: Row): string[] {
  return writable.map(({ name }) => name).filter((name) => name in fields);
}

/** Each transition and action of the resource. Whether a member of staff may do it is asked for each row. */
export function namedActions(resource: AnyResource): readonly AdminAction[] {
  const transitions = Object.entries((resource.options.transitions ?? {}) as unknown as Readonly<Record<string, TransitionRule>>);
  const actions = Object.entries(actionRulesOf(resource.options, STAFF));
  return [
    ...transitions.map(([name, rule]) =>
      namedAction(resource, name, rule, { done: String(rule.to), confirm: `The state becomes ${String(rule.to)}.` }, (access, id, input) =>
        access.transition(id, name, input),
      ),
    ),
    ...actions.map(([name, rule]) =>
      namedAction(resource, name, rule, { done: 'done', dryRun: rule.effects === undefined ? 'done' : null }, (access, id, input) =>
        access.action(id, name, input),
      ),
    ),
  ];
}

function namedAction(
  resource: AnyResource,
  name: string,
  rule: NamedRule,
  { done, confirm, dryRun = done }: ActionWords,
  act: (access: AdminAccess, id: string, input: unknown) => Promise<unknown>,
): AdminAction {
  const fields = inputFields(rule);
  return {
    name,
    label: rule.summary ?? labelOf(name),
    tone: 'neutral',
    on: 'selection',
    ...(dryRun === null ? {} : { dryRun }),
    ...(confirm === undefined ? {} : { confirm }),
    fields,
    async run(context, ids, given) {
      const access = await accessOf(resource, context);
      const input = await inputOf(rule, fields, given);
      const result = await adminEach(context, ids, async (id) => {
        await act(access, id, input);
      });
      return adminDone(result, [resource.name, `${resource.name}s`], done);
    },
  };
}

interface ActionWords {
  /** What the records are afterwards: `paid`. */
  readonly done: string;
  readonly confirm?: string;
  /** Null: it has effects that a dry run cannot take back. */
  readonly dryRun?: string | null;
}

const WHOLE = 'input';

/** The members of the input as fields; anything but a flat object is one field of JSON. */
function inputFields({ input }: NamedRule): readonly AdminField[] {
  if (input === undefined) return [];
  const { properties, required } = jsonSchemaOf(input, 'input') as {
    readonly properties?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
    readonly required?: readonly string[];
  };
  const fields = Object.entries(properties ?? {}).map(([name, schema]) => inputField(name, schema, required?.includes(name) === true));
  const flat = fields.filter((field) => field !== null);
  return properties === undefined || flat.length < fields.length ? [{ name: WHOLE, label: 'Input', kind: 'json', required: true }] : flat;
}

function inputField(name: string, schema: Readonly<Record<string, unknown>>, required: boolean): AdminField | null {
  const kind = FIELD_KINDS[String(schema['type'])];
  if (kind === undefined) return null;
  const choices = Array.isArray(schema['enum']) ? schema['enum'].map(String).map((value) => ({ value, label: value })) : undefined;
  const help = schema['description'];
  return {
    name,
    label: labelOf(name),
    kind: choices === undefined ? kind : 'select',
    required,
    ...(choices === undefined ? {} : { choices }),
    ...(typeof help === 'string' ? { help } : {}),
  };
}

const FIELD_KINDS: Readonly<Partial<Record<string, AdminField['kind']>>> = {
  string: 'text',
  integer: 'number',
  number: 'number',
  boolean: 'bool',
};

async function inputOf({ input }: NamedRule, fields: readonly AdminField[], given: Row): Promise<unknown> {
  if (input === undefined) return undefined;
  const [first] = fields;
  const value = first?.name === WHOLE && first.kind === 'json' ? given[WHOLE] : given;
  return checked(await input['~standard'].validate(value), ['body', 'fields']);
}
