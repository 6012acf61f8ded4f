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

/** After the tag of the controller where it is the only one with it, otherwise after the controller; in full where that is taken, too. */
export function groupNames(controllers: readonly (readonly CompiledRoute[])[]): ReadonlyMap<string, string> {
  const tagOf = ([first]: readonly CompiledRoute[]) => camelCase(first?.tags[0] ?? '');
  const tags = controllers.map(tagOf);
  const short = controllers.map((own) => {
    const tag = tagOf(own);
    const isOnly = tag !== '' && tags.filter((each) => each === tag).length === 1;
    return isOnly ? tag : camelCase(controllerName(own[0]!));
  });
  return new Map(
    controllers.map(([first], index) => {
      const name = short[index]!;
      const isFree = name !== TAKEN && short.filter((each) => each === name).length === 1;
      return [first!.controller, isFree ? name : `${camelCase(controllerName(first!))}Controller`];
    }),
  );
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
