import type { FieldError } from '../../errors/kit-error.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { Schema } from '../../http/schema.ts';
import type { Visibility } from '../policy/crud-request.ts';
import { crudErrors } from '../declare/errors.ts';
import type { ControllerLimits } from '../declare/limits.ts';
import type { Edge, Policy, ShownColumn } from '../policy/policy.ts';
import type { Permission, Verdict } from '../../permissions/permission.ts';
import type { ComputedContext } from '../declare/resource.ts';

/** A computed field with what must be loaded for it. */
export interface ComputedPlan {
  readonly name: string;
  readonly response: Schema;
  readonly value: (row: Readonly<Record<string, unknown>>, context: ComputedContext) => unknown;
  readonly columns: readonly string[];
  /** Columns of to-one relations, by relation. */
  readonly related: ReadonlyMap<string, readonly string[]>;
  /** All must admit the row before the value leaves: those of every required column that is decided per row, asked for or not. */
  readonly rowRules: readonly Permission[];
}

/** What of a row, and of the rows its relations lead to, one caller gets for one `fields` and `expand`. */
export interface Shape {
  readonly policy: Policy;
  /** Tells shapes of one policy apart. */
  readonly key: string;
  /** Shown on every row. */
  readonly columns: readonly ShownColumn[];
  /** Shown as null: hidden from this caller, with `hidden: 'null'`. */
  readonly nulls: readonly string[];
  /** Decided on each row. */
  readonly perRow: readonly ShownColumn[];
  readonly computed: readonly ComputedPlan[];
  readonly edges: readonly { readonly edge: Edge; readonly shape: Shape }[];
  /** Nothing was left out, by `fields` or by a role. */
  readonly isWhole: boolean;
}

/** `customer.name` and `id` as a tree: what is wanted of this row, and of each relation. */
export interface PathTree {
  readonly leaves: Set<string>;
  readonly branches: Map<string, PathTree>;
}

export function pathTree(paths: readonly string[]): PathTree {
  const root: PathTree = { leaves: new Set(), branches: new Map() };
  for (const path of paths) {
    const steps = path.split('.');
    let at = root;
    for (const step of steps.slice(0, -1)) {
      const next: PathTree = at.branches.get(step) ?? { leaves: new Set(), branches: new Map() };
      at.branches.set(step, next);
      at = next;
    }
    at.leaves.add(steps.at(-1) as string);
  }
  return root;
}

export interface ShapeRequest {
  /** Dotted names; undefined asks for everything. */
  readonly fields: readonly string[] | undefined;
  /** Dotted relations, already checked against the declaration. */
  readonly expand: readonly string[];
  /** Columns the controller shows; all of the policy unless given. */
  readonly output: ReadonlySet<string> | undefined;
}

/** Computes a shape and notes what the caller may not ask for. What is hidden is as unknown as a misspelling. */
export class ShapeMaker {
  readonly faults: FieldError[] = [];
  readonly #visibility: (policy: Policy) => Visibility;

  constructor(visibility: (policy: Policy) => Visibility) {
    this.#visibility = visibility;
  }

  make(policy: Policy, { fields, expand, output }: ShapeRequest): Shape {
    return this.#make(policy, fields === undefined ? undefined : pathTree(fields), pathTree(expand), output, '');
  }

  #make(policy: Policy, fields: PathTree | undefined, expand: PathTree, output: ReadonlySet<string> | undefined, path: string): Shape {
    const visibility = this.#visibility(policy);
    const columns: ShownColumn[] = [];
    const nulls: string[] = [];
    const perRow: ShownColumn[] = [];
    const known: string[] = [];
    let hides = false;
    for (const shown of policy.shown.values()) {
      if (output !== undefined && !output.has(shown.name) && shown.name !== policy.key.name) continue;
      const verdict = policy.sees(visibility, shown);
      if (verdict === false) {
        hides = true;
        if (shown.rule?.hidden === 'null' && isWanted(fields, shown.name)) nulls.push(shown.name);
        continue;
      }
      known.push(shown.name);
      const isRootKey = path === '' && shown.name === policy.key.name;
      if (!isRootKey && !isWanted(fields, shown.name)) continue;
      if (verdict === 'unknown') perRow.push(shown);
      else columns.push(shown);
    }
    const computed = computedOf(policy, this.#visibility).filter(({ name }) => {
      known.push(name);
      return isWanted(fields, name);
    });
    const edges = [...new Set([...expand.leaves, ...expand.branches.keys()])].sort().map((name) => {
      const edge = policy.edge(name) as Edge;
      const below = expand.branches.get(name) ?? pathTree([]);
      return { edge, shape: this.#make(edge.target, fields?.branches.get(name), below, undefined, `${path}${name}.`) };
    });
    this.#refuseUnknown(
      fields,
      known,
      edges.map(({ edge }) => edge.name),
      path,
    );
    const names = columns.map(({ name }) => name).join();
    const below = edges.map(({ edge, shape }) => `${edge.name}(${shape.key})`).join();
    return {
      policy,
      key: `${visibility.mask}:${names}:${perRow.map(({ name }) => name).join()}:${computed.map(({ name }) => name).join()}:${below}`,
      columns,
      nulls,
      perRow,
      computed,
      edges,
      isWhole: !hides && fields === undefined,
    };
  }

  #refuseUnknown(fields: PathTree | undefined, known: readonly string[], relations: readonly string[], path: string): void {
    if (fields === undefined) return;
    for (const name of fields.leaves) {
      if (known.includes(name) || relations.includes(name)) continue;
      this.faults.push(
        unknownName(
          'fields',
          `${path}${name}`,
          [...known, ...relations].map((each) => `${path}${each}`),
        ),
      );
    }
    for (const name of fields.branches.keys()) {
      if (relations.includes(name)) continue;
      this.faults.push({
        location: ['query', 'fields'],
        code: 'unknown_field',
        message: `"${path}${name}" is not expanded: add it to expand to choose its fields.`,
      });
    }
  }
}

function isWanted(fields: PathTree | undefined, name: string): boolean {
  return fields === undefined || fields.leaves.has(name);
}

export function unknownName(parameter: string, name: string, known: readonly string[]): FieldError {
  const message = `Unknown: ${JSON.stringify(name.slice(0, 100))}. ${nearestOrKnown(name, known)}`;
  return { location: ['query', parameter], code: 'unknown_field', message };
}

/** What a caller may give instead of a name that is unknown. */
export function nearestOrKnown(name: string, known: readonly string[]): string {
  return didYouMean(name, known).trim() || (known.length === 0 ? 'There is nothing to choose from here.' : `Known: ${known.join(', ')}.`);
}

/**
 * The computed fields the caller sees: those whose every required column it sees, of this row and of related ones. A column of the row that is decided
 * per row passes its rule on; one of a related row hides the field.
 */
export function computedOf(policy: Policy, visibilityOf: (policy: Policy) => Visibility): ComputedPlan[] {
  const verdictOf = (owner: Policy, column: string): Verdict => {
    const rule = owner.visibleTo(column);
    return rule === undefined ? true : (visibilityOf(owner).verdicts[owner.permissions.indexOf(rule)] as Verdict);
  };
  return Object.entries(policy.options.computed ?? {}).flatMap(([name, { requires, response, value }]) => {
    const columns: string[] = [];
    const related = new Map<string, string[]>();
    for (const path of requires) {
      const [first = '', second] = path.split('.');
      if (second === undefined) columns.push(first);
      else related.set(first, [...(related.get(first) ?? []), second]);
    }
    const isHidden =
      columns.some((column) => verdictOf(policy, column) === false) ||
      [...related].some(([relation, names]) => {
        const edge = policy.edge(relation);
        return (
          edge !== undefined && (verdictOf(policy, edge.column) !== true || names.some((column) => verdictOf(edge.target, column) !== true))
        );
      });
    if (isHidden) return [];
    const decidedPerRow = columns.filter((column) => verdictOf(policy, column) === 'unknown');
    const rowRules = [...new Set(decidedPerRow.map((column) => policy.visibleTo(column) as Permission))];
    return [{ name, response, value, columns, related, rowRules }];
  });
}

/** The policies whose columns the computed fields of a policy require. */
export function requiredPolicies(policy: Policy): Policy[] {
  const paths = Object.values(policy.options.computed ?? {}).flatMap(({ requires }) => requires);
  return paths.flatMap((path) => (path.includes('.') ? (policy.edge(path.split('.', 1)[0] as string)?.target ?? []) : []));
}

/** Refuses expansions that are too deep, too many, or would read too many rows for a page of this size. */
export function refuseCostlyExpand(
  paths: readonly string[],
  shape: Shape | undefined,
  pageSize: number,
  { expandPaths, expandDepth, expandRows }: ControllerLimits,
): void {
  const refuse = (detail: string, extensions: Readonly<Record<string, number>>) => {
    throw crudErrors.expand_too_costly({ detail, extensions });
  };
  if (paths.length > expandPaths) refuse(`At most ${expandPaths} paths can be expanded at once.`, { paths_max: expandPaths });
  if (paths.some((path) => path.split('.').length > expandDepth))
    refuse(`An expansion is at most ${expandDepth} relations deep.`, { depth_max: expandDepth });
  if (shape === undefined) return;
  const rows = expandedRows(shape, pageSize);
  if (rows > expandRows) refuse(`The expansion may read ${rows} rows; the limit is ${expandRows}.`, { rows, rows_max: expandRows });
}

function expandedRows(shape: Shape, parents: number): number {
  return shape.edges.reduce((sum, { edge, shape: below }) => {
    const rows = edge.kind === 'one' ? parents : parents * edge.limit;
    return sum + (edge.kind === 'one' ? 0 : rows) + expandedRows(below, rows);
  }, 0);
}
