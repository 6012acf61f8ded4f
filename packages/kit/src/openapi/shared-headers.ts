import { pascalCase } from './schema-names.ts';
import { shortDigest } from './shared-errors.ts';

type Paths = Readonly<Record<string, Readonly<Record<string, object>>>>;
type Headers = Readonly<Record<string, object>>;
interface Operation {
  readonly responses: Readonly<Record<string, { readonly headers?: Headers }>>;
}

/** Headers that several responses have become components; like those of parameters, names follow from their content. */
export function shareHeaders(paths: Paths): { readonly paths: Paths; readonly headers: Readonly<Record<string, object>> } {
  const uses = new Map<string, { readonly name: string; count: number }>();
  for (const operation of Object.values(paths).flatMap((item) => Object.values(item) as Operation[]))
    for (const { headers = {} } of Object.values(operation.responses))
      for (const [name, header] of Object.entries(headers)) {
        const text = JSON.stringify([name, header]);
        uses.set(text, { name, count: (uses.get(text)?.count ?? 0) + 1 });
      }
  const shared = new Map(
    [...uses].filter(([, { count }]) => count > 1).map(([text, { name }]) => [text, `${pascalCase(name)}_${shortDigest(text)}`]),
  );
  const replaced = (headers: Headers): Headers =>
    Object.fromEntries(
      Object.entries(headers).map(([name, header]) => {
        const component = shared.get(JSON.stringify([name, header]));
        return [name, component === undefined ? header : { $ref: `#/components/headers/${component}` }];
      }),
    );
  const mapped = (record: Readonly<Record<string, object>>, change: (value: object) => object) =>
    Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
  const response = (value: { readonly headers?: Headers }) =>
    value.headers === undefined ? value : { ...value, headers: replaced(value.headers) };
  const operation = (value: object) => ({ ...value, responses: mapped((value as Operation).responses, response) });
  return {
    paths: Object.fromEntries(Object.entries(paths).map(([path, item]) => [path, mapped(item, operation)])),
    headers: Object.fromEntries([...shared].map(([text, name]) => [name, (JSON.parse(text) as [string, object])[1]])),
  };
}
