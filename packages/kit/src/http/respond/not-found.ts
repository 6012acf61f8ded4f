import { coreErrors } from '../../errors/core-errors.ts';
import type { KitError } from '../../errors/kit-error.ts';
import type { CompiledRoute } from '../exchange/compiled-route.ts';

interface Node {
  readonly texts: Map<string, Node>;
  parameter: Node | undefined;
  /** What `*` takes: everything from here on. */
  rest: Node | undefined;
  readonly methods: Set<string>;
}

/** Which methods an address has, for the answer when the router found none: 405 with `Allow` instead of a 404 that lies. */
export class PathMethods {
  readonly #root: Node = newNode();

  constructor(routes: readonly CompiledRoute[]) {
    for (const route of routes) this.#add(route);
  }

  #add({ path, method, kind }: CompiledRoute): void {
    let node = this.#root;
    for (const segment of segmentsOf(path)) {
      if (segment === '*') node = node.rest ??= newNode();
      else if (segment.includes(':')) node = node.parameter ??= newNode();
      else {
        const next = node.texts.get(segment) ?? newNode();
        node.texts.set(segment, next);
        node = next;
      }
    }
    node.methods.add(method);
    if (method === 'GET' && kind !== 'stream') node.methods.add('HEAD');
  }

  /** Sorted; empty when no route has this path. */
  of(path: string): readonly string[] {
    const found = new Set<string>();
    collect(this.#root, segmentsOf(path), 0, found);
    if (found.size > 0) found.add('OPTIONS');
    return [...found].sort();
  }
}

/** The error for a request that matches no route. */
export function unmatched(method: string, allowed: readonly string[]): KitError {
  // The address has the method: something else kept the router from it, such as a trailing slash a foreign server does not tolerate.
  if (allowed.length === 0 || allowed.includes(method)) return coreErrors.not_found({ detail: 'No operation has this address.' });
  return coreErrors.method_not_allowed({
    detail: `This address does not support ${method.slice(0, 32)}.`,
    extensions: { allowed_methods: allowed },
    headers: { allow: allowed.join(', ') },
  });
}

function newNode(): Node {
  return { texts: new Map(), parameter: undefined, rest: undefined, methods: new Set() };
}

/** As the router sees a path: decoded, a slash at the end passed over, empty segments inside it not. */
function segmentsOf(path: string): string[] {
  const inner = path.replace(/^\//, '').replace(/\/$/, '');
  return inner === '' ? [] : inner.split('/').map(decoded);
}

function decoded(segment: string): string {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function collect(node: Node, segments: readonly string[], index: number, found: Set<string>): void {
  if (index === segments.length) {
    for (const method of node.methods) found.add(method);
    return;
  }
  for (const method of node.rest?.methods ?? []) found.add(method);
  const next = node.texts.get(segments[index] as string);
  if (next !== undefined) collect(next, segments, index + 1, found);
  if (node.parameter !== undefined && segments[index] !== '') collect(node.parameter, segments, index + 1, found);
}
