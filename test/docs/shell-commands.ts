/** The command lines of a shell block: continued lines joined, remarks and empty lines left out. */
export function commandLines(text: string): string[] {
  return text
    .replaceAll(/\s*\\\n\s*/g, ' ')
    .split('\n')
    .map((line) => line.replace(/(^|\s+)#.*$/, '').trim())
    .filter((line) => line !== '');
}

/** One program with its arguments, out of a line that may run several. */
export interface SimpleCommand {
  readonly variables: readonly string[];
  readonly words: readonly string[];
}

export function simpleCommands(line: string): SimpleCommand[] {
  return line.split(/\s*(?:&&|\|\||[|;&])\s*/).flatMap((part) => {
    const words = [...part.replaceAll(/\s*\d?>&?\s*\S+/g, '').matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)].map(([word]) =>
      word.replaceAll(/["']/g, ''),
    );
    const first = words.findIndex((word) => !/^\w+=/.test(word));
    const variables = words.slice(0, first < 0 ? words.length : first).map((word) => word.split('=')[0] ?? '');
    return words.length === 0 ? [] : [{ variables, words: first < 0 ? [] : words.slice(first) }];
  });
}

/** Programs that run until they are stopped, and what they print once they are of use. */
const SERVERS: readonly { readonly command: RegExp; readonly ready: RegExp }[] = [
  { command: /\bkit (?:--config \S+ )?start\b/, ready: / listens on / },
  { command: /\bkit dev\b/, ready: / listens on / },
  { command: /\bkit webhooks listen\b/, ready: /Listening on / },
  { command: /\bkit webhooks deliver\b.* --loop\b/, ready: /Delivering from / },
  { command: /\bconfig-server (?!-)\S+\.toml$/, ready: / listening on / },
];

/** What a command prints when it serves; undefined when it ends by itself. */
export function readyWhen(line: string): RegExp | undefined {
  return SERVERS.find(({ command }) => command.test(line.replace(/\s*&$/, '')))?.ready;
}
