import { shortDigest } from './shared-errors.ts';

type Paths = Readonly<Record<string, Readonly<Record<string, object>>>>;
interface Response {
  readonly $ref?: string;
  readonly headers?: object;
  readonly content?: Readonly<Record<string, { readonly schema?: { readonly $ref?: string } }>>;
}
interface Operation {
  readonly responses: Readonly<Record<string, Response>>;
}

/** A response of errors that one operation has stands there: a component and the reference to it would be longer. `Error` keeps its name. */
export function placeErrors(
  paths: Paths,
  components: Readonly<Record<string, object>>,
): { readonly paths: Paths; readonly errorResponses: Readonly<Record<string, object>> } {
  const uses = new Map<string, number>();
  const nameIn = ({ $ref = '' }: Response): string => $ref.slice('#/components/responses/'.length);
  const operations = Object.values(paths).flatMap((item) => Object.values(item) as Operation[]);
  for (const { responses } of operations)
    for (const response of Object.values(responses)) uses.set(nameIn(response), (uses.get(nameIn(response)) ?? 0) + 1);
  const isOwn = (name: string) => name !== 'Error' && uses.get(name) === 1;
  const placed = (response: Response): object => (isOwn(nameIn(response)) ? (components[nameIn(response)] ?? response) : response);
  return {
    paths: mapResponses(paths, placed),
    errorResponses: Object.fromEntries(Object.entries(components).filter(([name]) => !isOwn(name))),
  };
}

function mapResponses(paths: Paths, change: (response: Response) => object): Paths {
  const mapped = <V>(record: Readonly<Record<string, V>>, map: (value: V) => object): Record<string, object> =>
    Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]));
  const operation = (value: object) => ({ ...value, responses: mapped((value as Operation).responses, change) });
  return Object.fromEntries(Object.entries(paths).map(([path, item]) => [path, mapped(item, operation)]));
}

/**
 * Responses that several operations have become components, named after their schema; like those of parameters, names follow from their content.
 * `taken` are the names of error responses. A response that is one sentence stays in its place: a reference to it is longer.
 */
export function shareResponses(
  paths: Paths,
  taken: readonly string[],
): { readonly paths: Paths; readonly responses: Readonly<Record<string, object>> } {
  const uses = new Map<string, number>();
  for (const operation of Object.values(paths).flatMap((item) => Object.values(item) as Operation[]))
    for (const response of Object.values(operation.responses))
      if (response.$ref === undefined && (response.headers !== undefined || response.content !== undefined)) {
        const text = JSON.stringify(response);
        uses.set(text, (uses.get(text) ?? 0) + 1);
      }
  const shared = [...uses].filter(([, count]) => count > 1).map(([text]) => text);
  const names = new Map(
    [...Map.groupBy(shared, nameOf)].flatMap(([name, texts]) =>
      texts.map((text) => [text, texts.length === 1 && !taken.includes(name) ? name : `${name}_${shortDigest(text)}`] as const),
    ),
  );
  const placed = (response: Response): object => {
    const name = names.get(JSON.stringify(response));
    return name === undefined ? response : { $ref: `#/components/responses/${name}` };
  };
  return {
    paths: mapResponses(paths, placed),
    responses: Object.fromEntries([...names].map(([text, name]) => [name, JSON.parse(text) as object])),
  };
}

/** `Order` for a response with an order. */
function nameOf(text: string): string {
  const { content = {} } = JSON.parse(text) as Response;
  const [media] = Object.values(content);
  return media?.schema?.$ref?.split('/').at(-1) ?? (media === undefined ? 'NoContent' : 'Content');
}
