import type { Where } from '../../db/sql/where/where.ts';
import { type FieldError, isKitError } from '../../errors/kit-error.ts';
import { exchangeOf } from '../../http/serve/serve-route.ts';
import type { Item } from '../declare/item.ts';
import { keyText, readKey } from '../parameters/parameter-value.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import type { Context } from '../read/list-access.ts';
import { acceptedValues, type JudgedRow, ruleFaults } from '../write/row-rules.ts';
import { bulkOptions } from '../options/bulk-options.ts';
import type { Programs } from './programs.ts';
import type { ResourceAccess } from './resource-access.ts';

/** An item as it was sent. */
interface PlacedItem {
  readonly given: unknown;
  readonly at: FieldError['location'];
}

type Judge = (accepted: unknown, context: Context) => Promise<readonly FieldError[]>;

/**
 * The rules of a resource where the schema refuses a body: they are asked about what it accepts, so that a caller gets all faults at once. A body that
 * the schema accepts is judged by the pipeline, with the row locked.
 */
export class FaultsBeside {
  readonly #access: ResourceAccess;
  readonly #programs: Programs;

  constructor(access: ResourceAccess, programs: Programs) {
    this.#access = access;
    this.#programs = programs;
  }

  /** For the route of an operation; nothing where the resource has no rules. */
  of(action: 'create' | 'update' | 'partialUpdate' | 'bulkCreate' | 'bulkUpdate'): { readonly validate?: Judge } {
    if (this.#access.resource.options.validate === undefined) return {};
    const hasBodies = this.#access.resource.options.bodies !== undefined;
    const isBulk = action === 'bulkCreate' || action === 'bulkUpdate';
    const judge = isBulk ? this.#ofItems(action === 'bulkCreate' ? 'create' : 'partialUpdate') : this.#ofBody(action);
    return {
      validate: async (accepted, context) => {
        // A permission about the row is not settled yet: what the rules say could tell of a row that the caller may not change.
        if (context.body !== undefined || exchangeOf(context.request).verdict === 'unknown') return [];
        return judge(context, hasBodies ? (accepted as Item) : undefined);
      },
    };
  }

  #ofBody(action: 'create' | 'update' | 'partialUpdate'): (context: Context, accepted?: Item) => Promise<FieldError[]> {
    return async (context, accepted) => {
      const request = await this.#access.request(context, action);
      const [before] = action === 'create' ? [null] : await this.#rows(context, request, [(context.request.params as { id: string }).id]);
      if (before === undefined) return [];
      // What clients send is not columns: the schema of the body has read it.
      if (accepted !== undefined) return this.#ask(request, [{ before, values: accepted }]);
      return this.#judge(request, [{ given: context.request.body, before }]);
    };
  }

  #ofItems(action: 'create' | 'partialUpdate'): (context: Context) => Promise<FieldError[]> {
    return async (context) => {
      const items = (context.request.body as { readonly items?: unknown } | null | undefined)?.items;
      if (!Array.isArray(items) || items.length > bulkOptions(this.#access.options.bulk ?? {}).max) return [];
      const request = await this.#access.request(context, action);
      return this.ofItems(
        context,
        request,
        action,
        items.map((given: unknown, index) => ({ given, at: ['body', 'items', index] })),
      );
    };
  }

  /** Of items of a bulk request that the schema refuses. */
  async ofItems(
    context: Context,
    request: CrudRequest,
    action: 'create' | 'partialUpdate',
    items: readonly PlacedItem[],
  ): Promise<FieldError[]> {
    if (action === 'create')
      return this.#judge(
        request,
        items.map((item) => ({ ...item, before: null })),
      );
    const { lookup } = this.#access;
    const keyOf = ({ given }: PlacedItem) => keyText(lookup.settings, (given as Item | null)?.[lookup.name])?.toLowerCase();
    const rows = await this.#rows(
      context,
      request,
      items.flatMap((item) => keyOf(item) ?? []),
    );
    const byKey = new Map(rows.map((row) => [String(row[lookup.name]).toLowerCase(), row]));
    return this.#judge(
      request,
      items.flatMap((item) => {
        const before = byKey.get(keyOf(item) ?? '');
        return before === undefined ? [] : [{ ...item, before }];
      }),
    );
  }

  async #judge(
    request: CrudRequest,
    items: readonly (Pick<JudgedRow, 'at' | 'before'> & { readonly given: unknown })[],
  ): Promise<FieldError[]> {
    const { policy, input } = this.#access;
    const rows: JudgedRow[] = [];
    for (const { given, at, before } of items)
      rows.push({ ...(at === undefined ? {} : { at }), before, values: await acceptedValues(policy, input, given) });
    return this.#ask(request, rows);
  }

  #ask(request: CrudRequest, rows: readonly JudgedRow[]): Promise<FieldError[]> {
    const { policy } = this.#access;
    return ruleFaults(policy, policy.database(request), request, rows);
  }

  /** Those of the rows that the caller sees. A row that is not there has no rules: the schema's faults are reported alone. */
  async #rows(context: Context, request: CrudRequest, keys: readonly string[]): Promise<Item[]> {
    const { lookup, policy } = this.#access;
    const values = keys.flatMap((text) => {
      const read = readKey(policy.settingsOf(lookup.name), text);
      return read.fault === undefined ? [read.value] : [];
    });
    if (values.length === 0) return [];
    try {
      const ofParent = await this.#access.parentRows(context, request, policy.database(request), false);
      return await this.#programs.rowsAs(request, { [lookup.name]: { in: values } } as Where, values.length, 'live', ofParent);
    } catch (error) {
      if (isKitError(error) && error.status === 404) return [];
      throw error;
    }
  }
}
