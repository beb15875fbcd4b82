/** The words of the start page of a server without runs. */
export const text = {
  title: "Nothing has been evaluated here yet",
  hint: "Three commands fill this page: log in, push an environment, run it.",
  commands: (server: string) => [
    `proctor login ${server}`,
    "proctor env init my-env && proctor env push my-env",
    "proctor eval run my-env --hosted --follow -m local",
  ],
  or: "Or see a real one now:",
  example: "Run the example evaluation",
  exampleHint: (rollouts: number, environment: string) =>
    `${rollouts} rollouts of a small environment, ${environment}, with the model that is built into this server. No key is needed, and it costs nothing.`,
  starting: "Starting…",
};
