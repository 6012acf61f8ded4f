import { Command } from 'commander';
import type { App } from '../../src/app/declare/module.ts';
import { CliFailure } from '../../src/cli/terminal/cli-failure.ts';
import type { CliContext } from '../../src/cli/load/context.ts';

/** What a command of the app prints, or why it fails. Closes the app. */
export async function runCommand(
  register: (program: Command, context: CliContext) => void,
  app: App,
  args: readonly string[],
): Promise<string> {
  let printed = '';
  const print = (text: string): boolean => ((printed += text), true);
  const context = {
    bareApp: () => Promise.resolve(app),
    json: false,
    print,
    stdout: { write: print },
    fail: (message: string) => {
      throw new CliFailure(message);
    },
  } as unknown as CliContext;
  const command = new Command();
  register(command, context);
  try {
    await command.parseAsync(args, { from: 'user' });
    return printed;
  } catch (error) {
    if (error instanceof CliFailure) return `failed: ${error.message}`;
    throw error;
  } finally {
    await app.close();
  }
}
