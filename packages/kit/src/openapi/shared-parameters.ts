import { pascalCase } from './schema-names.ts';
import { shortDigest } from './shared-errors.ts';

interface Parameter {
  readonly name: string;
  readonly in: string;
}

type Operation = { readonly parameters?: readonly Parameter[] };

/** Parameters that several operations have become components; names follow from their content, not from the order of operations. */
export function shareParameters(paths: Readonly<Record<string, Readonly<Record<string, object>>>>): {
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>;
  readonly parameters: Readonly<Record<string, object>>;
} {
  const uses = new Map<string, number>();
  for (const item of Object.values(paths))
    for (const { parameters = [] } of Object.values(item) as Operation[])
      for (const parameter of parameters) uses.set(JSON.stringify(parameter), (uses.get(JSON.stringify(parameter)) ?? 0) + 1);
  const shared = [...uses].filter(([, count]) => count > 1).map(([text]) => ({ text, parameter: JSON.parse(text) as Parameter }));
  const variants = Map.groupBy(shared, ({ parameter }) => pascalCase(parameter.name));
  const names = new Map(
    [...variants].flatMap(([name, list]) =>
      list.map(({ text }) => [text, list.length === 1 ? name : `${name}_${shortDigest(text)}`] as const),
    ),
  );
  const replaced = (operation: Operation) => {
    const { parameters } = operation;
    if (parameters === undefined) return operation;
    return {
      ...operation,
      parameters: parameters.map((parameter) => {
        const name = names.get(JSON.stringify(parameter));
        return name === undefined ? parameter : { $ref: `#/components/parameters/${name}` };
      }),
    };
  };
  return {
    paths: Object.fromEntries(
      Object.entries(paths).map(([path, item]) => [
        path,
        Object.fromEntries(Object.entries(item).map(([method, operation]) => [method, replaced(operation as Operation)])),
      ]),
    ),
    parameters: Object.fromEntries([...names].map(([text, name]) => [name, JSON.parse(text) as object])),
  };
}

/** Parameters of a path stand beside its operations, once, where all of them describe them the same. */
export function withPathParameters(
  paths: Readonly<Record<string, Readonly<Record<string, object>>>>,
  components: Readonly<Record<string, object>>,
): Record<string, Record<string, object>> {
  const isInPath = (parameter: object): boolean => {
    const reference = (parameter as { readonly $ref?: string }).$ref?.split('/').at(-1);
    return ((reference === undefined ? parameter : components[reference]) as Parameter).in === 'path';
  };
  return Object.fromEntries(
    Object.entries(paths).map(([path, item]) => {
      const operations = Object.values(item) as Operation[];
      const texts = operations.map(({ parameters = [] }) => JSON.stringify(parameters.filter(isInPath)));
      const [first = '[]'] = texts;
      if (first === '[]' || texts.some((text) => text !== first)) return [path, item];
      const own = ({ parameters = [], ...operation }: Operation): object => {
        const others = parameters.filter((each) => !isInPath(each));
        return { ...operation, ...(others.length === 0 ? {} : { parameters: others }) };
      };
      const rest = Object.entries(item).map(([method, operation]) => [method, own(operation)] as const);
      return [path, { parameters: JSON.parse(first) as object, ...Object.fromEntries(rest) }];
    }),
  );
}
