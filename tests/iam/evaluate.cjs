// Standard input: a list of what runSimulation takes. Standard output: a list of its results.
const { runSimulation } = require('@cloud-copilot/iam-simulate')

async function decide(simulation) {
  const response = await runSimulation(simulation, {})
  return response.resultType === 'error'
    ? { result: null, errors: response.errors }
    : { result: response.overallResult, errors: null }
}

async function main() {
  const chunks = []
  for await (const chunk of process.stdin) chunks.push(chunk)
  const decisions = []
  for (const simulation of JSON.parse(Buffer.concat(chunks))) decisions.push(await decide(simulation))
  process.stdout.write(JSON.stringify(decisions))
}

main()
