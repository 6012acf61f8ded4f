import type { Model } from '../../db/declare/model.ts';
import { sensitiveSchemaOf } from '../../db/declare/column-json.ts';
import { sensitiveNames } from '../../db/declare/sensitive-members.ts';
import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';

interface Declarations {
  readonly modules: readonly { readonly models?: readonly Pick<Model, 'columns'>[] | undefined }[];
  readonly routes: readonly Pick<CompiledRoute, 'params' | 'query' | 'headers' | 'cookies' | 'body'>[];
}

/** Names that some column, or some schema of what clients send, marks as sensitive, at any depth. */
export function sensitiveNamesOf({ modules, routes }: Declarations): ReadonlySet<string> {
  const columns = modules.flatMap(({ models = [] }) => models.flatMap((model) => Object.entries(model.columns)));
  const inputs = routes.flatMap(({ params, query, headers, cookies, body }) => [params, query, headers, cookies, body]);
  return new Set([
    ...columns.flatMap(([name, { settings }]) => {
      const members = sensitiveSchemaOf(settings);
      const inside = members === undefined ? [] : sensitiveNames(members);
      return settings.sensitive ? [name].concat(inside) : inside;
    }),
    ...inputs.flatMap((input) => (input === undefined ? [] : sensitiveNames(input.json))),
  ]);
}
