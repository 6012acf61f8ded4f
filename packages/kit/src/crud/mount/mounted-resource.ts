import type { Address } from '../input/with-address.ts';
import { cursorsOf } from '../../app/data/cursors.ts';
import type { App } from '../../app/declare/module.ts';
import type { AuditSink } from '../../auth/request/audit-sink.ts';
import { BoundedMap } from '../../db/values/bounded-map.ts';
import type { Cursors } from '../../db/sql/keyset/cursor.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import type { DeclaredParts } from '../../http/compile/declared-parts.ts';
import type { AnyCrudOptions } from '../options/crud-options.ts';
import { type ControllerLimits, limits, limitsOf } from '../declare/limits.ts';
import { isMembers } from '../../options/value-rule.ts';
import { pageOptions } from '../options/page-options.ts';
import type { AnyResource } from '../declare/resource.ts';
import type { SearchBackend } from '../declare/search-backend.ts';
import { type ActionRule, actionRulesOf, type TransitionRule } from '../declare/action-rule.ts';
import { clientColumns } from '../policy/column-roles.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import { requiredPolicies, Views } from '../policy/make-view.ts';
import { policiesOf, type Policies } from '../policy/policies.ts';
import type { Edge, Policy, StoredColumn } from '../policy/policy.ts';
import type { View } from '../policy/view.ts';
import { FilterParameters } from '../parameters/filter-parameters.ts';
import type { ListDeclaration, ShapeParameters } from '../read/list-query.ts';
import { readKey } from '../parameters/parameter-value.ts';
import { containsSearch } from '../read/search.ts';
import { makeShape, refuseCostlyExpand, type Shape } from '../read/shape.ts';
import { type NestedPlan, nestedPlans } from '../write/nested.ts';
import { NestedBody } from '../write/nested-body.ts';
import { Pipeline } from '../write/pipeline.ts';
import { transitionRulesOf } from '../write/possible-transitions.ts';
import type { RowKey } from '../write/row-statements.ts';

/** What the options of a controller make of a resource, once per app: lists, views, shapes, input and the write pipeline. */
export class MountedResource {
  readonly resource: AnyResource;
  readonly options: AnyCrudOptions;
  readonly limits: ControllerLimits;
  readonly #taken = new Set<string>();
  #policy: Policy | undefined;
  #policies: Policies | undefined;
  #list: ListDeclaration | undefined;
  #pipeline: Pipeline | undefined;
  #nested: readonly NestedPlan[] | undefined;
  #app: App | undefined;
  #views: Views | undefined;
  /** Policies that a declared path leads to, and the resource's own. */
  #involved: readonly Policy[] = [];
  /** Undefined until the first list is read. */
  #cursors: Cursors | undefined;
  /** Without, GET of one record costs four times as much (crud-retrieve on SQLite): the reader of its rows is compiled again. */
  readonly #shapes = new BoundedMap<string, Shape>(limits.plans);

  constructor(resource: AnyResource, options: AnyCrudOptions) {
    this.resource = resource;
    this.options = options;
    this.limits = limitsOf(options.limits);
  }

  /** Every controller of the app exists: relations can be followed. `taken`: last segments of URLs that lead to no record. */
  prepare(declared: DeclaredParts, taken: Iterable<string> = []): void {
    for (const segment of taken) this.#taken.add(segment);
    const policies = policiesOf(declared);
    const policy = policies.of(this.resource, this.audience, this.using);
    const { filters = {}, search, ordering, expand = [], page, sparse, queryMethod } = this.options;
    this.#policies = policies;
    this.#policy = policy;
    this.#list = {
      policy,
      filters: new FilterParameters(policy, filters),
      search: Array.isArray(search)
        ? search.length === 0
          ? undefined
          : containsSearch(search as string[])
        : (search as SearchBackend | undefined),
      ordering,
      page: pageOptions(page),
      isSparse: sparse !== false,
      output: this.output,
      expand: new Set(expand.flatMap(prefixes)),
      queryMethod: queryMethod ?? Object.keys(filters).length > 0,
      hasDeleted: this.options.restore === true && policy.softDelete !== undefined,
      limits: this.limits,
    };
    this.#involved = [...involvedPolicies(policy, this.#list)];
    this.#views = new Views(policy, this.#involved, this.output);
    this.#pipeline = new Pipeline(policy, { audit: null, events: null });
  }

  install(app: App): void {
    this.#app = app;
    this.#cursors = undefined;
    this.#pipeline = new Pipeline(this.policy, app.registry);
  }

  /** Where reads and exports are recorded: null where the resource does not record them, or no module does. */
  auditOf(what: 'reads' | 'exports'): AuditSink | null {
    const { audit } = this.resource.options;
    return isMembers(audit) && audit[what] === true ? (this.#app ?? this.#notMounted()).registry.audit : null;
  }

  /** The alias of the database that its rows are in. */
  get using(): string {
    return this.options.using ?? this.resource.options.using ?? 'default';
  }

  /** Null: the resource's own rules. */
  get audience(): string | null {
    return this.options.audience ?? null;
  }

  get policy(): Policy {
    return this.#policy ?? this.#notMounted();
  }

  get policies(): Policies {
    return this.#policies ?? this.#notMounted();
  }

  get list(): ListDeclaration {
    return this.#list ?? this.#notMounted();
  }

  get pipeline(): Pipeline {
    return this.#pipeline ?? this.#notMounted();
  }

  get involved(): readonly Policy[] {
    return this.#involved;
  }

  get app(): App {
    return this.#app ?? this.#notMounted();
  }

  /** Every route of the app. */
  get appRoutes(): readonly CompiledRoute[] {
    return this.app.routes;
  }

  async cursors(): Promise<Cursors> {
    return (this.#cursors ??= await cursorsOf(this.app));
  }

  /**
   * The tables that responses are made of: the resource's own and every one that relations and references lead to. Undefined where rows are
   * given by something else than rows of these tables.
   */
  readonly tables = (): readonly string[] | undefined => {
    const found = new Map<Policy, string>();
    const visit = (policy: Policy): void => {
      if (found.has(policy)) return;
      found.set(policy, policy.tableName);
      for (const name of Object.keys(policy.resource.relations as object)) {
        const edge = policy.edge(name);
        if (edge !== undefined) visit(edge.target);
      }
      for (const target of policy.references.values()) visit(target);
    };
    visit(this.policy);
    return [...found.keys()].some(({ options }) => options.access !== undefined) ? undefined : [...found.values()];
  };

  /** The column of `/:id`. */
  get lookup(): StoredColumn {
    const { lookup } = this.options;
    // A name that is no column is reported at start-up.
    return (lookup === undefined ? undefined : this.policy.findColumn(lookup)) ?? this.policy.key;
  }

  /** How the URL of a record is made. */
  get address(): Address {
    return { column: this.lookup.name, taken: this.#taken };
  }

  /** The relation that the address is below, if any. */
  get parent(): { readonly edge: Edge; readonly param: string } | undefined {
    const { parent } = this.options;
    if (parent === undefined) return undefined;
    const edge = this.policy.edge(parent.relation);
    // A name that is no relation is reported at start-up.
    return edge === undefined ? undefined : { edge, param: parent.param ?? edge.column };
  }

  /** Columns a client may send. */
  get input(): readonly string[] {
    if (this.resource.options.bodies !== undefined) return [];
    const own = this.options.input;
    const parent = this.parent?.edge.column;
    return clientColumns(this.policy).flatMap(({ name }) => (name !== parent && (own?.includes(name) ?? true) ? [name] : []));
  }

  /** Relations whose rows are written with theirs. */
  get nested(): readonly NestedPlan[] {
    return (this.#nested ??= nestedPlans(this.policy));
  }

  get nestedBody(): NestedBody | undefined {
    return this.nested.length === 0 ? undefined : new NestedBody(this.nested);
  }

  get output(): ReadonlySet<string> | undefined {
    const { output } = this.options;
    return output === undefined ? undefined : new Set(output);
  }

  get transitionRules(): Readonly<Record<string, TransitionRule>> {
    return transitionRulesOf(this.resource);
  }

  /** The actions that controllers of this audience offer. */
  get actionRules(): Readonly<Record<string, ActionRule>> {
    return actionRulesOf(this.resource.options, this.audience);
  }

  /** What this caller may know of the rows and those that declared paths lead to. */
  view(request: CrudRequest): Promise<View> {
    return (this.#views ?? this.#notMounted()).of(request);
  }

  shape(view: View, parameters: ShapeParameters, pageSize: number): Shape {
    const { fields, expand } = parameters;
    refuseCostlyExpand(expand, undefined, pageSize, this.limits);
    // All fields are the empty text: a client can send any other, and `fields` without a name is refused.
    const key = `${view.mask}|${fields?.join() ?? ''}|${expand.join()}`;
    const shape = this.#shapes.getOrMake(key, () => {
      const made = makeShape(view, parameters);
      if (made.faults.length > 0) throw coreErrors.validation_error({ errors: made.faults });
      return made.shape;
    });
    refuseCostlyExpand(expand, shape, pageSize, this.limits);
    return shape;
  }

  rowKey(text: string): RowKey {
    const column = this.lookup;
    const read = readKey(this.policy.settingsOf(column.name), text);
    if (read.fault !== undefined) throw this.policy.missing();
    return { column, value: read.value };
  }

  #notMounted(): never {
    throw new Error(`The controller of "${this.resource.name}" is not mounted in an app.`);
  }
}

/** `items.product` → `items`, `items.product`. */
function prefixes(path: string): string[] {
  const steps = path.split('.');
  return steps.map((_, index) => steps.slice(0, index + 1).join('.'));
}

function involvedPolicies(policy: Policy, { expand, filters, search }: ListDeclaration): Set<Policy> {
  const found = new Set([policy]);
  for (const path of expand) {
    let at: Policy | undefined = policy;
    for (const step of path.split('.')) {
      at = at?.edge(step)?.target;
      if (at !== undefined) found.add(at);
    }
  }
  const filtered = [...filters.columns.values()].flatMap(({ relation }) => relation ?? []);
  const searched = (search?.columns ?? []).flatMap((path) => (path.includes('.') ? (path.split('.', 1)[0] as string) : []));
  for (const relation of [...filtered, ...searched]) {
    const target = policy.edge(relation)?.target;
    if (target !== undefined) found.add(target);
  }
  // A Set is walked to what is added on the way.
  for (const each of found) for (const target of requiredPolicies(each)) found.add(target);
  return found;
}
