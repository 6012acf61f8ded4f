import { BoundedMap } from '../../db/values/bounded-map.ts';
import type { Permission, Verdict } from '../../permissions/permission.ts';
import type { CrudRequest, Verdicts } from './crud-request.ts';
import type { Policy } from './policy.ts';
import { View, type ViewColumn, type ViewComputed, type ViewEdge } from './view.ts';

/** Masks of one resource: 2⁶ permissions at most. */
const VIEWS_MAX = 64;

/** What the permissions of a policy say to one caller; undefined where nobody asked them. */
type VerdictsOf = (policy: Policy) => Verdicts | undefined;

/** The views of one controller: one per mask of every policy that its paths lead to. */
export class Views {
  readonly #policy: Policy;
  readonly #output: ReadonlySet<string> | undefined;
  /** Policies whose columns not every caller sees. */
  readonly #deciding: readonly Policy[];
  /** Without, GET of one record costs 78 % more (crud-retrieve on SQLite): a new view has no shapes yet. */
  readonly #known = new BoundedMap<string, View>(VIEWS_MAX);

  /** `involved`: every policy that a declared path leads to. Relations to others cannot be followed. */
  constructor(policy: Policy, involved: Iterable<Policy>, output?: ReadonlySet<string>) {
    this.#policy = policy;
    this.#output = output;
    this.#involved = new Set([policy, ...involved]);
    this.#deciding = [...this.#involved].filter(({ permissions }) => permissions.length > 0);
  }

  readonly #involved: ReadonlySet<Policy>;

  /** What this caller may know. Permissions are asked once per request. */
  async of(request: CrudRequest): Promise<View> {
    const verdicts = new Map<Policy, Verdicts>();
    for (const policy of this.#deciding) verdicts.set(policy, await verdictsOf(policy, request));
    const mask = [...verdicts.values()].map((each) => each.mask).join('/');
    let view = this.#known.get(mask);
    if (view === undefined) {
      const ofInvolved: VerdictsOf = (policy) => (this.#involved.has(policy) ? (verdicts.get(policy) ?? NO_RULES) : undefined);
      this.#known.set(mask, (view = makeView(this.#policy, mask, ofInvolved, this.#output)));
    }
    return view;
  }
}

/** Decided once per request and policy. */
async function verdictsOf(policy: Policy, request: CrudRequest): Promise<Verdicts> {
  const known = request.verdicts.get(policy);
  if (known !== undefined) return known;
  const settled: Verdict[] = [];
  for (const permission of policy.permissions) settled.push(await permission.evaluate(request.context));
  const verdicts = {
    mask: settled.map((verdict) => (verdict === 'unknown' ? 'u' : verdict ? '1' : '0')).join(''),
    of: (permission: Permission) => settled[policy.permissions.indexOf(permission)] as Verdict,
  };
  request.verdicts.set(policy, verdicts);
  return verdicts;
}

const NO_RULES: Verdicts = Object.freeze({ mask: '', of: (): Verdict => true });
const EVERY_RULE_DENIES: Verdicts = Object.freeze({ mask: '', of: (): Verdict => false });

/** What every receiver may know: the columns under no rule. For events. */
export function viewOfEveryone(policy: Policy): View {
  return kept(everyone, policy, () => makeView(policy, 'everyone', () => EVERY_RULE_DENIES));
}

/** Every column that some caller sees, with its rule: for the OpenAPI document, `kit inspect` and the checks at start-up. */
export function widestView(policy: Policy, output?: ReadonlySet<string>): View {
  return output === undefined
    ? kept(widest, policy, () => makeView(policy, 'widest', () => NO_RULES))
    : makeView(policy, 'widest', () => NO_RULES, output);
}

const everyone = new WeakMap<Policy, View>();
const widest = new WeakMap<Policy, View>();

function kept(views: WeakMap<Policy, View>, policy: Policy, make: () => View): View {
  let view = views.get(policy);
  if (view === undefined) views.set(policy, (view = make()));
  return view;
}

function makeView(policy: Policy, mask: string, verdicts: VerdictsOf, output?: ReadonlySet<string>): View {
  const own = verdicts(policy) ?? NO_RULES;
  const { hidden = [] } = policy.options;
  const columns = new Map<string, ViewColumn>();
  let hidesColumns = false;
  for (const { name, settings: declared } of policy.statements.columns) {
    const rule = policy.ruleOf(name);
    // An encrypted column is shown where a rule says to whom.
    const isShowable = !declared.sensitive || (declared.encrypted !== undefined && rule?.visibleTo !== undefined);
    if (!isShowable || declared.internal || hidden.includes(name)) continue;
    const verdict = verdictOn(policy, own, name);
    if (verdict === false && (output === undefined || output.has(name))) hidesColumns = true;
    if (verdict === false && rule?.hidden !== 'null') continue;
    const shown = verdict === true ? 'always' : verdict === 'unknown' ? 'row' : 'null';
    columns.set(name, { kind: 'column', name, settings: policy.settingsOf(name), rule, shown });
  }
  return new View({
    policy,
    mask,
    columns,
    computed: computedFields(policy, verdicts),
    output,
    hidesColumns,
    edgeOf: (name) => followable(policy, name, mask, verdicts),
  });
}

function verdictOn(policy: Policy, verdicts: Verdicts, column: string): Verdict {
  const permission = policy.ruleOf(column)?.visibleTo;
  return permission === undefined ? true : verdicts.of(permission);
}

/** Both ends of a relation are joined by a column: who does not see it on every row cannot follow the relation. */
function followable(policy: Policy, name: string, mask: string, verdicts: VerdictsOf): ViewEdge | undefined {
  const edge = policy.edge(name);
  if (edge === undefined) return undefined;
  const holder = edge.kind === 'one' ? policy : edge.target;
  const ofHolder = verdicts(holder);
  if (ofHolder === undefined || verdicts(edge.target) === undefined) return undefined;
  return verdictOn(holder, ofHolder, edge.column) === true ? { edge, view: makeView(edge.target, mask, verdicts) } : undefined;
}

/**
 * The computed fields the caller sees: those whose every required column it sees. A column of the row that is decided per row passes its rule on;
 * one of a related row, or one that leads there, hides the field.
 */
function computedFields(policy: Policy, verdicts: VerdictsOf): ReadonlyMap<string, ViewComputed> {
  const found = new Map<string, ViewComputed>();
  for (const [name, { requires, response, value, load, ofRow }] of Object.entries(policy.computed)) {
    const columns: string[] = [];
    const related = new Map<string, string[]>();
    /** Every required column, with whether its rule can be decided on the row itself. */
    const required: { readonly permission: Permission; readonly verdict: Verdict; readonly isOwn: boolean }[] = [];
    const require = (holder: Policy, column: string, isOwn: boolean): void => {
      const permission = holder.ruleOf(column)?.visibleTo;
      const ofHolder = verdicts(holder);
      if (permission !== undefined) required.push({ permission, verdict: ofHolder?.of(permission) ?? false, isOwn });
    };
    for (const path of requires) {
      const [first = '', second] = path.split('.');
      if (second === undefined) {
        columns.push(first);
        require(policy, first, true);
        continue;
      }
      related.set(first, [...(related.get(first) ?? []), second]);
      const edge = policy.edge(first);
      if (edge === undefined) continue;
      require(policy, edge.column, false);
      require(edge.target, second, false);
    }
    if (required.some(({ verdict, isOwn }) => verdict === false || (verdict === 'unknown' && !isOwn))) continue;
    const rowRules = required.filter(({ verdict }) => verdict === 'unknown').map(({ permission }) => permission);
    const visibleTo = [...new Set(required.map(({ permission }) => permission))];
    found.set(name, {
      kind: 'computed',
      name,
      response,
      value,
      load,
      ofRow,
      columns,
      related,
      rowRules: [...new Set(rowRules)],
      visibleTo,
    });
  }
  return found;
}

/** The policies whose columns the computed fields of a policy require. */
export function requiredPolicies(policy: Policy): Policy[] {
  const paths = Object.values(policy.computed).flatMap(({ requires }) => requires);
  return paths.flatMap((path) => (path.includes('.') ? (policy.edge(path.split('.', 1)[0] as string)?.target ?? []) : []));
}
