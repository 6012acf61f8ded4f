import type { Command as CommanderCommand } from 'commander';
import type { CliContext } from './context.ts';

/** A command that is part of the program itself and may look behind the modules' context. */
export interface CoreCommand {
  readonly name: string;
  readonly summary: string;
  /** Not listed: a program starts it, not a person. */
  readonly hidden?: boolean;
  readonly configure: (command: CommanderCommand, context: CliContext) => void;
}
