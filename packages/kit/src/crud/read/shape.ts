import type { FieldError } from '../../errors/kit-error.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import { crudErrors } from '../declare/errors.ts';
import type { ControllerLimits } from '../declare/limits.ts';
import type { Edge, Policy } from '../policy/policy.ts';
import type { View, ViewColumn, ViewComputed, ViewEdge } from '../policy/view.ts';

/** What of a row, and of the rows its relations lead to, one caller gets for one `fields` and `expand`. */
export interface Shape {
  readonly policy: Policy;
  /** Tells shapes of one policy apart. */
  readonly key: string;
  /** In the order of the wire; each says whether its value is shown on every row. */
  readonly columns: readonly ViewColumn[];
  readonly computed: readonly ViewComputed[];
  /** The names of the columns, and of those in another form, in the order of the wire. */
  readonly places: readonly string[];
  readonly edges: readonly { readonly edge: Edge; readonly shape: Shape }[];
  /** Nothing was left out, by `fields` or by a role. */
  readonly isWhole: boolean;
}

/** `customer.name` and `id` as a tree: what is wanted of this row, and of each relation. */
interface PathTree {
  readonly leaves: Set<string>;
  readonly branches: Map<string, PathTree>;
}

function pathTree(paths: readonly string[]): PathTree {
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
}

/** The shape of a view, and what of it the caller may not ask for. What is hidden is as unknown as a misspelling. */
export function makeShape(view: View, { fields, expand }: ShapeRequest): { readonly shape: Shape; readonly faults: readonly FieldError[] } {
  const faults: FieldError[] = [];
  const shape = shapeOf(view, fields === undefined ? undefined : pathTree(fields), pathTree(expand), '', faults);
  return { shape, faults };
}

function shapeOf(view: View, fields: PathTree | undefined, expand: PathTree, path: string, faults: FieldError[]): Shape {
  const { policy } = view;
  const isWanted = (name: string) => fields === undefined || fields.leaves.has(name);
  const isRootKey = (name: string) => path === '' && name === policy.key.name;
  const columns = view.shownColumns().filter(({ name }) => isWanted(name) || isRootKey(name));
  const computed = view.computedFields().filter(({ name }) => isWanted(name));
  const places = [...view.fields.keys()].filter((name) => view.knows(name) !== undefined && (isWanted(name) || isRootKey(name)));
  const edges = [...new Set([...expand.leaves, ...expand.branches.keys()])].sort().map((name) => {
    const { edge, view: below } = view.edge(name) as ViewEdge;
    const deeper = expand.branches.get(name) ?? pathTree([]);
    return { edge, shape: shapeOf(below, fields?.branches.get(name), deeper, `${path}${name}.`, faults) };
  });
  if (fields !== undefined)
    faults.push(
      ...unknownFields(
        view,
        fields,
        edges.map(({ edge }) => edge.name),
        path,
      ),
    );
  const names = (list: readonly { readonly name: string }[]) => list.map(({ name }) => name).join();
  const below = edges.map(({ edge, shape }) => `${edge.name}(${shape.key})`).join();
  const isWhole = !view.hidesColumns && fields === undefined;
  return { policy, key: `${view.mask}:${names(columns)}:${names(computed)}:${below}`, columns, computed, places, edges, isWhole };
}

function unknownFields(view: View, fields: PathTree, relations: readonly string[], path: string): FieldError[] {
  const known = [...view.fields.keys(), ...relations];
  const leaves = [...fields.leaves].filter((name) => !known.includes(name));
  const branches = [...fields.branches.keys()].filter((name) => !relations.includes(name));
  return [
    ...leaves.map((name) =>
      unknownName(
        'fields',
        `${path}${name}`,
        known.map((each) => `${path}${each}`),
      ),
    ),
    ...branches.map((name) => ({
      location: ['query', 'fields'],
      code: 'unknown_field',
      message: `"${path}${name}" is not expanded: add it to expand to choose its fields.`,
    })),
  ];
}

export function unknownName(parameter: string, name: string, known: readonly string[]): FieldError {
  const message = `Unknown: ${JSON.stringify(name.slice(0, 100))}. ${nearestOrKnown(name, known)}`;
  return { location: ['query', parameter], code: 'unknown_field', message };
}

/** What a caller may give instead of a name that is unknown. */
export function nearestOrKnown(name: string, known: readonly string[]): string {
  return didYouMean(name, known).trim() || (known.length === 0 ? 'There is nothing to choose from here.' : `Known: ${known.join(', ')}.`);
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
  if (paths.length > expandPaths) refuse(`At most ${expandPaths} paths can be expanded in one request.`, { paths_max: expandPaths });
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
