import type { Command as CommanderCommand } from 'commander';

/** A subcommand a module adds to the `kit` program. `A` is the App; it is a parameter so that this file needs no module. */
export interface Command<A = unknown> {
  /** The name after `kit`: `invoices` is `kit invoices`. */
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** Adds options, arguments, nested commands and the action. */
  readonly configure: (command: CommanderCommand, context: CommandContext<A>) => void;
}

export interface CommandContext<A = unknown> {
  /** Loads kit.config.ts and opens the databases, when first called. */
  app(): Promise<A>;
  /** One line on standard output. */
  print(text: string): void;
  readonly json: boolean;
  /** Ends the program with this sentence on standard error and exit code 1. */
  fail(message: string): never;
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
  /** A secret typed by a person (asked twice, not echoed) or the first line of a pipe; never an argument, which others could read. */
  secret(label: string): Promise<string>;
  progress(label: string, total: number): { advance(count?: number): void; end(): void };
}
