import type { ColumnSettings } from '../../db/declare/column.ts';
import type { Schema } from '../../http/declare/schema.ts';
import type { Permission } from '../../permissions/permission.ts';
import type { FieldRule } from '../declare/field-rule.ts';
import type { ComputedField } from '../declare/computed-field.ts';
import type { DerivedState } from './derived-state.ts';
import type { Edge, Policy } from './policy.ts';

/** What a name is used for. What is decided per row can be shown, and nothing else: an order or a filter would tell its value. */
export type NameUse = 'show' | 'filter' | 'order' | 'group' | 'measure';

export interface ViewColumn {
  readonly kind: 'column';
  readonly name: string;
  /** With references resolved to the column they refer to. */
  readonly settings: ColumnSettings;
  readonly rule: FieldRule | undefined;
  /** Set for a state that conditions decide: it can be filtered and grouped, and is no column. */
  readonly derived?: DerivedState;
  /** `row`: the rule decides on each row. `null`: the caller gets null, whatever the value is. */
  readonly shown: 'always' | 'row' | 'null';
}

export interface ViewComputed {
  readonly kind: 'computed';
  readonly name: string;
  readonly response: Schema;
  readonly value: ComputedField['value'];
  readonly load: ComputedField['load'];
  readonly ofRow: ComputedField['ofRow'];
  /** Columns of the row that are loaded for it; hidden ones are among them, and are never shown by themselves. */
  readonly columns: readonly string[];
  /** Columns of to-one relations, by relation. */
  readonly related: ReadonlyMap<string, readonly string[]>;
  /** All must admit the row before the value leaves: those of every required column that is decided per row, asked for or not. */
  readonly rowRules: readonly Permission[];
  /** Who sees it at all: the permissions of everything it requires. */
  readonly visibleTo: readonly Permission[];
}

export type ViewField = ViewColumn | ViewComputed;

/** A relation that this caller can follow. */
export interface ViewEdge {
  readonly edge: Edge;
  readonly view: View;
}

/** A name together with the relations that lead to it: nobody can strip the path. */
export interface Found {
  readonly edges: readonly ViewEdge[];
  readonly view: View;
  readonly field: ViewField;
}

/** The parts of a view; `edgeOf` makes the views of relations when they are asked for, because relations may be circular. */
export interface ViewParts {
  readonly policy: Policy;
  readonly mask: string;
  readonly columns: ReadonlyMap<string, ViewColumn>;
  readonly computed: ReadonlyMap<string, ViewComputed>;
  /** Columns and computed fields that the controller shows; undefined for all. */
  readonly output: ReadonlySet<string> | undefined;
  readonly hidesColumns: boolean;
  readonly edgeOf: (name: string) => ViewEdge | undefined;
}

/** What one caller may know of a resource. A name that is not here does not exist: hidden, unknown and misspelt are the same. */
export class View {
  readonly policy: Policy;
  /** Same text, same view, relations included: part of every plan's key, of ETags, of idempotency audiences and caches. */
  readonly mask: string;
  /** True when the caller's role hides a column. */
  readonly hidesColumns: boolean;
  /** Members of a row, in the order of the wire: columns, then computed fields. */
  readonly fields: ReadonlyMap<string, ViewField>;
  readonly #columns: ReadonlyMap<string, ViewColumn>;
  readonly #computed: ReadonlyMap<string, ViewComputed>;
  readonly #edgeOf: (name: string) => ViewEdge | undefined;
  readonly #edges = new Map<string, ViewEdge | undefined>();

  constructor({ policy, mask, columns, computed, output, hidesColumns, edgeOf }: ViewParts) {
    this.policy = policy;
    this.mask = mask;
    this.hidesColumns = hidesColumns;
    this.#columns = columns;
    this.#computed = computed;
    this.#edgeOf = edgeOf;
    const isOutput = (name: string) => output === undefined || output.has(name) || name === policy.key.name;
    // A column in another form is in the place of the column.
    this.fields = new Map<string, ViewField>([...columns, ...computed].filter(([name]) => isOutput(name)));
  }

  /** The columns among {@link fields}. */
  shownColumns(): ViewColumn[] {
    return [...this.fields.values()].filter((field) => field.kind === 'column');
  }

  computedFields(): ViewComputed[] {
    return [...this.fields.values()].filter((field) => field.kind === 'computed');
  }

  /** A relation that the caller can follow: one through a column that it does not see is as unknown as the column. */
  edge(name: string): ViewEdge | undefined {
    if (!this.#edges.has(name)) this.#edges.set(name, this.#edgeOf(name));
    return this.#edges.get(name);
  }

  /** `items.product`: every relation on the way; undefined when one of them cannot be followed. */
  follow(path: string): readonly ViewEdge[] | undefined {
    const edges: ViewEdge[] = [];
    for (const step of path.split('.')) {
      const edge = (edges.at(-1)?.view ?? this).edge(step);
      if (edge === undefined) return undefined;
      edges.push(edge);
    }
    return edges;
  }

  /** `title`, `customer.name`: the field, with the relations that lead to it. Undefined when the caller may not use it so. */
  find(path: string, use: NameUse): Found | undefined {
    const end = path.lastIndexOf('.');
    const edges = end === -1 ? [] : this.follow(path.slice(0, end));
    if (edges === undefined) return undefined;
    const view = edges.at(-1)?.view ?? this;
    const name = path.slice(end + 1);
    const field = use === 'show' ? view.fields.get(name) : view.#comparable(name, use);
    return field === undefined ? undefined : { edges, view, field };
  }

  /** A column of this name whose values the caller may compare, order, group or measure. */
  comparable(name: string, use: Exclude<NameUse, 'show'>): ViewColumn | undefined {
    const found = this.find(name, use)?.field as ViewColumn | undefined;
    return found?.derived !== undefined && use !== 'filter' && use !== 'group' ? undefined : found;
  }

  /** How the caller sees a column, whether the controller shows it or not; undefined when it does not. */
  knows(column: string): ViewColumn['shown'] | undefined {
    return this.#columns.get(column)?.shown;
  }

  /** What a controller declares may be compared, whether it is shown or not; what the caller does not see on every row may not. */
  #comparable(name: string, use: NameUse): ViewColumn | undefined {
    const column = this.#columns.get(name) ?? this.#derived(name);
    // A ciphertext has no order and no groups.
    if (column?.settings.encrypted !== undefined && use !== 'filter') return undefined;
    return column?.shown === 'always' ? column : undefined;
  }

  /** A derived state in the form of a column, where the caller sees everything that it depends on in every row. */
  #derived(name: string): ViewColumn | undefined {
    const state = this.policy.derived.get(name);
    const field = this.#computed.get(name);
    if (state === undefined || field === undefined || field.rowRules.length > 0) return undefined;
    const [visibleTo] = field.visibleTo;
    const rule = visibleTo === undefined ? undefined : { visibleTo, hidden: 'omit' as const };
    return { kind: 'column', name, settings: state.settings, rule, shown: 'always', derived: state };
  }
}
