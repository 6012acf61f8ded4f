import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import { controllerName, pascalCase } from '../schema-names.ts';

export function camelCase(text: string): string {
  const pascal = pascalCase(text);
  return pascal.charAt(0).toLowerCase() + pascal.slice(1);
}

/** The POST alias that stands beside an operation with the QUERY method: of both, it passes every proxy. */
export const aliasOf = (route: CompiledRoute, own: readonly CompiledRoute[]): CompiledRoute | undefined =>
  route.method === 'QUERY' ? own.find(({ method, path }) => method === 'POST' && path === `${route.path}/query`) : undefined;

/** A member of every client. */
const TAKEN = 'connection';

/**
 * After the tag of the controller. Of several with one tag, the widest has it: the one nearest to the root, then the one with the shortest name. So a
 * second one changes no name; it is called after its controller, and in full where that is taken, too.
 */
export function groupNames(controllers: readonly (readonly CompiledRoute[])[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const taken = new Set([TAKEN]);
  const claim = (controller: string, wanted: string): boolean => {
    if (wanted === '' || taken.has(wanted) || names.has(controller)) return false;
    taken.add(wanted);
    names.set(controller, wanted);
    return true;
  };
  const owners = controllers.map((own) => ({
    controller: own[0]!.controller,
    // A name without a letter of ASCII becomes that of any other such name.
    tag: /^\w/.test(own[0]!.controller) ? camelCase(own[0]!.tags[0] ?? '') : '',
    plain: camelCase(controllerName(own[0]!)),
    depth: Math.min(...own.map(({ path }) => path.split('/').length)),
  }));
  const byWidth = owners.toSorted(
    (a, b) => a.depth - b.depth || a.controller.length - b.controller.length || (a.controller < b.controller ? -1 : 1),
  );
  for (const { controller, tag } of byWidth) claim(controller, tag);
  const called = Map.groupBy(
    byWidth.filter(({ controller }) => !names.has(controller)),
    ({ plain }) => plain,
  );
  for (const [plain, same] of called)
    for (const { controller } of same) if (same.length > 1 || !claim(controller, plain)) names.set(controller, `${plain}Controller`);
  return names;
}

/** The method of a client by operation id: `order_list` is `['orders', 'list']`. */
export function clientNames(routes: readonly CompiledRoute[]): Readonly<Record<string, readonly [group: string, method: string]>> {
  const shown = routes.filter(({ hidden }) => !hidden);
  const byController = Map.groupBy(shown, ({ controller }) => controller);
  const groups = groupNames([...byController.values()]);
  return Object.fromEntries(
    shown.map((route) => {
      const own = byController.get(route.controller) ?? [];
      const field = own.find((other) => aliasOf(other, own) === route)?.field ?? route.field;
      return [route.operationId, [groups.get(route.controller)!, camelCase(field)]];
    }),
  );
}
