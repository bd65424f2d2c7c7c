local last_argument = #ARGV
