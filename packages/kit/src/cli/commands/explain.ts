import { nearest } from '../../options/did-you-mean.ts';
import { codeOf, explanations, loadToolkitErrors, type Explanation } from '../load/explanations.ts';
import type { CliContext } from '../load/context.ts';
import type { CoreCommand } from '../load/core-command.ts';
import { table } from '../terminal/terminal.ts';

export const explainCommand: CoreCommand = (command, context) => {
  command
    .argument(
      '[code]',
      'an error (not_found), its type (urn:kit:error:not_found), a check (W008), a code of a field or of kit openapi diff',
    )
    .addHelpText(
      'after',
      '\nWithout a code it lists all of them. Errors that the app declares are explained, too, when the app can be loaded.',
    )
    .action(async (given: string | undefined) => {
      await loadToolkitErrors();
      // An app that cannot be loaded is what the person may be asking about.
      await context.bareApp().catch(() => undefined);
      const known = explanations();
      if (given === undefined) return list(known, context);
      const code = codeOf(given).toLowerCase();
      const found = known.filter((explanation) => explanation.code.toLowerCase() === code);
      if (found.length === 0) context.fail(unknownCode(given, known));
      if (context.json) context.print(JSON.stringify(found));
      else context.print(found.map(paragraphs).join('\n\n'));
    });
};

function unknownCode(given: string, known: readonly Explanation[]): string {
  const codes = known.map(({ code }) => code);
  const near = nearest(codeOf(given), codes, codes.length);
  const hint = near === undefined ? '' : ` Did you mean ${near}?`;
  return `No error, check or change has the code ${JSON.stringify(given)}.${hint} kit explain lists all codes.`;
}

function list(known: readonly Explanation[], context: CliContext): void {
  if (context.json) return context.print(JSON.stringify(known.map(({ code, kind, title }) => ({ code, kind, title }))));
  const rows = known.map(({ code, kind, title }) => [code, kind, title]);
  context.print(table(['code', 'kind', 'title'], rows).join('\n'));
}

function paragraphs({ code, kind, title, meaning, remedy, example }: Explanation): string {
  return [
    `${code}: ${title} (${kind})`,
    meaning,
    ...(remedy === undefined ? [] : [`What to do: ${remedy}`]),
    ...(example === undefined ? [] : [`A response:\n\nHTTP ${example.status}\n${JSON.stringify(example.body, null, 2)}`]),
  ].join('\n\n');
}
